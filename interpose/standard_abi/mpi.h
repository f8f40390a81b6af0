// What the standard ABI of MPI 5.0 fixes, as far as papaya needs it: libpapaya-abi.so is compiled against this header,
// so that it can be built where no MPI 5 is installed. The values are those of the standard's chapter on the ABI and
// its appendix A.1.
#ifndef PAPAYA_STANDARD_ABI_MPI_H
#define PAPAYA_STANDARD_ABI_MPI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MPI_VERSION 5
#define MPI_SUBVERSION 0
#define MPI_ABI_VERSION 1
#define MPI_ABI_SUBVERSION 0

typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef int64_t MPI_Count;

typedef struct MPI_ABI_Comm* MPI_Comm;
typedef struct MPI_ABI_Datatype* MPI_Datatype;
typedef struct MPI_ABI_Errhandler* MPI_Errhandler;
typedef struct MPI_ABI_File* MPI_File;
typedef struct MPI_ABI_Group* MPI_Group;
typedef struct MPI_ABI_Info* MPI_Info;
typedef struct MPI_ABI_Message* MPI_Message;
typedef struct MPI_ABI_Op* MPI_Op;
typedef struct MPI_ABI_Request* MPI_Request;
typedef struct MPI_ABI_Session* MPI_Session;
typedef struct MPI_ABI_Win* MPI_Win;

typedef struct {
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
  int MPI_internal[5];
} MPI_Status;

// Error classes.
#define MPI_SUCCESS 0
#define MPI_ERR_BUFFER 1
#define MPI_ERR_COUNT 2
#define MPI_ERR_TYPE 3
#define MPI_ERR_TAG 4
#define MPI_ERR_COMM 5
#define MPI_ERR_RANK 6
#define MPI_ERR_REQUEST 7
#define MPI_ERR_ROOT 8
#define MPI_ERR_GROUP 9
#define MPI_ERR_OP 10
#define MPI_ERR_ARG 13
#define MPI_ERR_UNKNOWN 14
#define MPI_ERR_TRUNCATE 15
#define MPI_ERR_OTHER 16
#define MPI_ERR_INTERN 17
#define MPI_ERR_PENDING 18
#define MPI_ERR_IN_STATUS 19
#define MPI_ERR_NO_MEM 39
#define MPI_ERR_UNSUPPORTED_OPERATION 55

// Addresses, and what is left out.
#define MPI_BOTTOM ((void*)0)
#define MPI_IN_PLACE ((void*)1)
#define MPI_STATUS_IGNORE ((MPI_Status*)0)
#define MPI_STATUSES_IGNORE ((MPI_Status*)0)
#define MPI_UNWEIGHTED ((int*)10)
#define MPI_WEIGHTS_EMPTY ((int*)11)

// Of strings.
#define MPI_MAX_ERROR_STRING 512
#define MPI_MAX_INFO_KEY 256
#define MPI_MAX_INFO_VAL 1024
#define MPI_MAX_LIBRARY_VERSION_STRING 8192
#define MPI_MAX_OBJECT_NAME 128
#define MPI_MAX_PROCESSOR_NAME 256

// Special values of ranks, tags and counts: no two are equal.
#define MPI_ANY_SOURCE (-1)
#define MPI_ANY_TAG (-2)
#define MPI_PROC_NULL (-3)
#define MPI_ROOT (-4)
#define MPI_UNDEFINED (-32766)

#define MPI_THREAD_SINGLE 0
#define MPI_THREAD_FUNNELED 1024
#define MPI_THREAD_SERIALIZED 2048
#define MPI_THREAD_MULTIPLE 4096

#define MPI_COMBINER_NAMED 101
#define MPI_COMBINER_DUP 102
#define MPI_COMBINER_CONTIGUOUS 103
#define MPI_COMBINER_F90_REAL 113
#define MPI_COMBINER_F90_COMPLEX 114
#define MPI_COMBINER_F90_INTEGER 115

#define MPI_IDENT 201
#define MPI_UNEQUAL 204

#define MPI_CART 211
#define MPI_GRAPH 212
#define MPI_DIST_GRAPH 213

#define MPI_COMM_TYPE_SHARED 221

#define MPI_KEYVAL_INVALID 0
#define MPI_TAG_UB 501

// Predefined handles.
#define MPI_OP_NULL ((MPI_Op)32)
#define MPI_SUM ((MPI_Op)33)
#define MPI_MIN ((MPI_Op)34)
#define MPI_MAX ((MPI_Op)35)
#define MPI_PROD ((MPI_Op)36)
#define MPI_BAND ((MPI_Op)40)
#define MPI_BOR ((MPI_Op)41)
#define MPI_BXOR ((MPI_Op)42)
#define MPI_LAND ((MPI_Op)48)
#define MPI_LOR ((MPI_Op)49)
#define MPI_LXOR ((MPI_Op)50)
#define MPI_MINLOC ((MPI_Op)56)
#define MPI_MAXLOC ((MPI_Op)57)
#define MPI_REPLACE ((MPI_Op)60)
#define MPI_NO_OP ((MPI_Op)61)

#define MPI_COMM_NULL ((MPI_Comm)256)
#define MPI_COMM_WORLD ((MPI_Comm)257)
#define MPI_COMM_SELF ((MPI_Comm)258)
#define MPI_GROUP_NULL ((MPI_Group)264)
#define MPI_WIN_NULL ((MPI_Win)272)
#define MPI_SESSION_NULL ((MPI_Session)288)
#define MPI_MESSAGE_NULL ((MPI_Message)296)
#define MPI_INFO_NULL ((MPI_Info)304)
#define MPI_ERRHANDLER_NULL ((MPI_Errhandler)320)
#define MPI_ERRORS_ARE_FATAL ((MPI_Errhandler)321)
#define MPI_ERRORS_ABORT ((MPI_Errhandler)322)
#define MPI_ERRORS_RETURN ((MPI_Errhandler)323)
#define MPI_REQUEST_NULL ((MPI_Request)384)

#define MPI_DATATYPE_NULL ((MPI_Datatype)512)
#define MPI_AINT ((MPI_Datatype)513)
#define MPI_COUNT ((MPI_Datatype)514)
#define MPI_OFFSET ((MPI_Datatype)515)
#define MPI_PACKED ((MPI_Datatype)519)
#define MPI_SHORT ((MPI_Datatype)520)
#define MPI_INT ((MPI_Datatype)521)
#define MPI_LONG ((MPI_Datatype)522)
#define MPI_LONG_LONG_INT ((MPI_Datatype)523)
#define MPI_LONG_LONG MPI_LONG_LONG_INT
#define MPI_UNSIGNED_SHORT ((MPI_Datatype)524)
#define MPI_UNSIGNED ((MPI_Datatype)525)
#define MPI_UNSIGNED_LONG ((MPI_Datatype)526)
#define MPI_UNSIGNED_LONG_LONG ((MPI_Datatype)527)
#define MPI_FLOAT ((MPI_Datatype)528)
#define MPI_C_FLOAT_COMPLEX ((MPI_Datatype)530)
#define MPI_C_COMPLEX MPI_C_FLOAT_COMPLEX
#define MPI_CXX_FLOAT_COMPLEX ((MPI_Datatype)531)
#define MPI_DOUBLE ((MPI_Datatype)532)
#define MPI_C_DOUBLE_COMPLEX ((MPI_Datatype)534)
#define MPI_CXX_DOUBLE_COMPLEX ((MPI_Datatype)535)
#define MPI_LOGICAL ((MPI_Datatype)536)
#define MPI_INTEGER ((MPI_Datatype)537)
#define MPI_REAL ((MPI_Datatype)538)
#define MPI_COMPLEX ((MPI_Datatype)539)
#define MPI_DOUBLE_PRECISION ((MPI_Datatype)540)
#define MPI_DOUBLE_COMPLEX ((MPI_Datatype)541)
#define MPI_CHARACTER ((MPI_Datatype)542)
#define MPI_LONG_DOUBLE ((MPI_Datatype)544)
#define MPI_C_LONG_DOUBLE_COMPLEX ((MPI_Datatype)548)
#define MPI_CXX_LONG_DOUBLE_COMPLEX ((MPI_Datatype)549)
#define MPI_FLOAT_INT ((MPI_Datatype)552)
#define MPI_DOUBLE_INT ((MPI_Datatype)553)
#define MPI_LONG_INT ((MPI_Datatype)554)
#define MPI_2INT ((MPI_Datatype)555)
#define MPI_SHORT_INT ((MPI_Datatype)556)
#define MPI_LONG_DOUBLE_INT ((MPI_Datatype)557)
#define MPI_2REAL ((MPI_Datatype)560)
#define MPI_2DOUBLE_PRECISION ((MPI_Datatype)561)
#define MPI_2INTEGER ((MPI_Datatype)562)
#define MPI_C_BOOL ((MPI_Datatype)568)
#define MPI_CXX_BOOL ((MPI_Datatype)569)
#define MPI_WCHAR ((MPI_Datatype)572)
#define MPI_INT8_T ((MPI_Datatype)576)
#define MPI_UINT8_T ((MPI_Datatype)577)
#define MPI_CHAR ((MPI_Datatype)579)
#define MPI_SIGNED_CHAR ((MPI_Datatype)580)
#define MPI_UNSIGNED_CHAR ((MPI_Datatype)581)
#define MPI_BYTE ((MPI_Datatype)583)
#define MPI_INT16_T ((MPI_Datatype)584)
#define MPI_UINT16_T ((MPI_Datatype)585)
#define MPI_INT32_T ((MPI_Datatype)592)
#define MPI_UINT32_T ((MPI_Datatype)593)
#define MPI_INT64_T ((MPI_Datatype)600)
#define MPI_UINT64_T ((MPI_Datatype)601)
#define MPI_INTEGER1 ((MPI_Datatype)705)
#define MPI_INTEGER2 ((MPI_Datatype)713)
#define MPI_INTEGER4 ((MPI_Datatype)721)
#define MPI_REAL4 ((MPI_Datatype)722)
#define MPI_INTEGER8 ((MPI_Datatype)729)
#define MPI_REAL8 ((MPI_Datatype)730)
#define MPI_COMPLEX8 ((MPI_Datatype)731)
#define MPI_COMPLEX16 ((MPI_Datatype)739)

typedef int MPI_Comm_copy_attr_function(MPI_Comm, int, void*, void*, void*, int*);
typedef int MPI_Comm_delete_attr_function(MPI_Comm, int, void*, void*);
typedef void MPI_Comm_errhandler_function(MPI_Comm*, int*, ...);
typedef int MPI_Grequest_query_function(void*, MPI_Status*);
typedef int MPI_Grequest_free_function(void*);
typedef int MPI_Grequest_cancel_function(void*, int);
typedef void MPI_User_function(void*, void*, int*, MPI_Datatype*);

#define MPI_COMM_NULL_COPY_FN ((MPI_Comm_copy_attr_function*)0)
#define MPI_COMM_NULL_DELETE_FN ((MPI_Comm_delete_attr_function*)0)

// Each function has a second name for tools.
#define ABI(name, ...)         \
  int MPI_##name(__VA_ARGS__); \
  int PMPI_##name(__VA_ARGS__);
#include "interpose/standard_abi/functions.def"
#undef ABI
int MPI_Pcontrol(const int, ...);
int PMPI_Pcontrol(const int, ...);

#ifdef __cplusplus
}
#endif

#endif
