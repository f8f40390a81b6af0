// libmpi_abi.so.1 over the MPI that is installed here: functions and values of the standard ABI
// (interpose/standard_abi), passed on to that MPI's own. So papaya's library for the standard ABI meets real
// collectives, types, operations, attributes and errors where no MPI 5 is installed, and a layer that translates beside
// the MPI beneath it.
//
// abi::X is a type or value of the standard, MPI_X one of the MPI beneath. Handles that the standard does not fix are
// the MPI's own, as numbers.
#include "stand_in.hpp"

#include <dlfcn.h>

#include <memory>
#include <tuple>
#include <vector>

namespace stand_in {

namespace {

// Of the MPI beneath alone: the names are this library's, too.
void* beneath(const char* name) {
  static void* const library = [] {
    Dl_info mpi;
    dladdr(reinterpret_cast<const void*>(&MPI_Wtime), &mpi);
    return dlopen(mpi.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }();
  return dlsym(library, name);
}

// What a parameter of the standard's type is beneath: how it is passed, and given back after the call.
template <class A>
struct Argument {
  A value;
  A native() { return value; }
  void give_back() {}
};

template <Handle A>
struct Argument<A> {
  A value;
  auto native() { return to_native(value); }
  void give_back() {}
};

// How many a list has, of requests and statuses and of types; set by the call.
thread_local int listed = 1;
thread_local int listed_types = 1;

template <class A>
requires Handle<std::remove_const_t<A>>
struct Argument<A*> {
  A* const list;
  using Natives = std::vector<decltype(to_native(std::remove_const_t<A>{}))>;
  std::shared_ptr<Natives> natives = std::make_shared<Natives>();

  explicit Argument(A* given) : list(given) {
    const int count = std::is_const_v<A> ? listed_types : listed;
    for (int i = 0; list != nullptr && i < count; ++i) natives->push_back(to_native(list[i]));
    // A nonblocking call reads its list of types until it has ended.
    static auto& kept = *new std::vector<std::shared_ptr<Natives>>;
    if (std::is_const_v<A>) kept.push_back(natives);
  }
  auto* native() { return list == nullptr ? nullptr : natives->data(); }
  void give_back() {
    if constexpr (!std::is_const_v<A>)
      for (std::size_t i = 0; i < natives->size(); ++i) list[i] = to_abi<A>((*natives)[i]);
  }
};

template <>
struct Argument<abi::Status*> {
  abi::Status* const list;
  std::vector<MPI_Status> natives;

  explicit Argument(abi::Status* given) : list(given) {
    for (int i = 0; list != nullptr && i < listed; ++i) natives.push_back(to_native(list[i]));
  }
  MPI_Status* native() { return list == nullptr ? ignored() : natives.data(); }
  void give_back() {
    for (std::size_t i = 0; i < natives.size(); ++i) list[i] = to_abi(natives[i]);
  }

 private:
  static MPI_Status* ignored() { return listed == 1 ? MPI_STATUS_IGNORE : MPI_STATUSES_IGNORE; }
};
template <>
struct Argument<const abi::Status*> {
  MPI_Status one;
  explicit Argument(const abi::Status* given) : one(to_native(*given)) {}
  const MPI_Status* native() { return &one; }
  void give_back() {}
};

template <>
struct Argument<int> {
  int value;
  int native() { return to_native(value); }
  void give_back() {}
};
template <class A>
requires std::is_same_v<A, const int*>
struct Argument<A> {
  const int* value;
  const int* native() {
    return value == abi::unweighted ? MPI_UNWEIGHTED : value == abi::weights_empty ? MPI_WEIGHTS_EMPTY : value;
  }
  void give_back() {}
};
template <class A>
requires std::is_same_v<A, void*> || std::is_same_v<A, const void*>
struct Argument<A> {
  A value;
  A native() { return value == abi::in_place ? MPI_IN_PLACE : value; }
  void give_back() {}
};

int size_of(MPI_Comm comm) {
  int size = 1;
  int inter = 0;
  reinterpret_cast<int (*)(MPI_Comm, int*)>(beneath("PMPI_Comm_test_inter"))(comm, &inter);
  reinterpret_cast<int (*)(MPI_Comm, int*)>(beneath(inter ? "PMPI_Comm_remote_size" : "PMPI_Comm_size"))(comm, &size);
  return size;
}

// As many as the count before it says.
template <class... A>
int length_of_requests(A... arguments) {
  const std::tuple<A...> all(arguments...);
  if constexpr (sizeof...(A) >= 2) {
    using First = std::tuple_element_t<0, std::tuple<A...>>;
    using Second = std::tuple_element_t<1, std::tuple<A...>>;
    if constexpr (std::is_same_v<First, int> && std::is_same_v<Second, abi::Request*>) return std::get<0>(all);
  }
  return 1;
}

// As many as the communicator has ranks.
template <class... A>
int length_of_types(A... arguments) {
  if constexpr ((std::is_same_v<A, const abi::Datatype*> || ...))
    return size_of(to_native(std::get<abi::Comm>(std::tuple<A...>(arguments...))));
  return 1;
}

template <class... A>
int pass_on(const char* name, A... arguments) {
  static_assert(sizeof...(A) < 20);
  listed = length_of_requests(arguments...);
  listed_types = length_of_types(arguments...);
  std::tuple<Argument<A>...> all{Argument<A>{arguments}...};
  listed = 1;
  return std::apply(
      [&](auto&... each) {
        using Function = int (*)(decltype(each.native())...);
        const auto function = reinterpret_cast<Function>(beneath(name));
        if (function == nullptr) return abi::err_unsupported_operation;
        const int code = function(each.native()...);
        (each.give_back(), ...);
        return code;
      },
      all);
}

// Those whose arguments do not say by their types what they are.

template <class... Types>
auto find(const char* name) {
  return reinterpret_cast<int (*)(Types...)>(beneath(name));
}

struct Attribute {
  abi::Comm_copy_attr_function* copy;
  abi::Comm_delete_attr_function* remove;
  void* extra;
};
int copy_attribute(MPI_Comm comm, int keyval, void* extra, void* in, void* out, int* flag) {
  const auto& attribute = *static_cast<Attribute*>(extra);
  return attribute.copy(to_abi<abi::Comm>(comm), keyval, attribute.extra, in, out, flag);
}
int delete_attribute(MPI_Comm comm, int keyval, void* value, void* extra) {
  const auto& attribute = *static_cast<Attribute*>(extra);
  return attribute.remove(to_abi<abi::Comm>(comm), keyval, value, attribute.extra);
}

struct Generalised {
  abi::Grequest_query_function* query;
  abi::Grequest_free_function* free;
  abi::Grequest_cancel_function* cancel;
  void* extra;
};
int query_generalised(void* extra, MPI_Status* native) {
  const auto& request = *static_cast<Generalised*>(extra);
  abi::Status status = to_abi(*native);
  const int code = request.query(request.extra, &status);
  *native = to_native(status);
  return code;
}
int free_generalised(void* extra) {
  const auto* request = static_cast<Generalised*>(extra);
  const int code = request->free(request->extra);
  delete request;
  return code;
}
int cancel_generalised(void* extra, int complete) {
  const auto& request = *static_cast<Generalised*>(extra);
  return request.cancel(request.extra, complete);
}

// Operations and error handlers have no argument of their own: one function for each that a program makes.
constexpr std::size_t most_made = 16;
abi::User_function* user_functions[most_made];
abi::Comm_errhandler_function* error_functions[most_made];
template <std::size_t number>
void apply_user(void* in, void* inout, int* count, MPI_Datatype* type) {
  abi::Datatype of_standard = to_abi<abi::Datatype>(*type);
  user_functions[number](in, inout, count, &of_standard);
}
template <std::size_t number>
void handle_error(MPI_Comm* comm, int* code, ...) {
  abi::Comm of_standard = to_abi<abi::Comm>(*comm);
  error_functions[number](&of_standard, code);
}
template <std::size_t... numbers>
auto user_function(std::size_t number, std::index_sequence<numbers...>) {
  static constexpr MPI_User_function* all[] = {apply_user<numbers>...};
  return all[number];
}
template <std::size_t... numbers>
auto error_function(std::size_t number, std::index_sequence<numbers...>) {
  static constexpr MPI_Comm_errhandler_function* all[] = {handle_error<numbers>...};
  return all[number];
}

#define ABI(name, ...) \
  struct name {};
#include "tests/abi/all_functions.def"
#undef ABI

int special(Abi_get_version, int* major, int* minor) {
  *major = 1;
  *minor = 0;
  return MPI_SUCCESS;
}
int special(Init_thread, int* argc, char*** argv, int required, int* provided) {
  const int code =
      find<int*, char***, int, int*>("PMPI_Init_thread")(argc, argv, native_of(thread_levels, required), provided);
  *provided = abi_of(thread_levels, *provided);
  return code;
}
int special(Query_thread, int* provided) {
  const int code = find<int*>("PMPI_Query_thread")(provided);
  *provided = abi_of(thread_levels, *provided);
  return code;
}
int special(Error_class, int code, int* error_class) {
  const int result = find<int, int*>("PMPI_Error_class")(code, error_class);
  *error_class = abi_of(error_classes, *error_class);
  return result;
}
int special(Comm_split_type, abi::Comm comm, int type, int key, abi::Info info, abi::Comm* made) {
  MPI_Comm native = MPI_COMM_NULL;
  const int code = find<MPI_Comm, int, int, MPI_Info, MPI_Comm*>("PMPI_Comm_split_type")(
      to_native(comm), type == abi::type_shared ? MPI_COMM_TYPE_SHARED : to_native(type), key, to_native(info),
      &native);
  *made = to_abi<abi::Comm>(native);
  return code;
}
int special(Group_compare, abi::Group one, abi::Group other, int* result) {
  const int code = find<MPI_Group, MPI_Group, int*>("PMPI_Group_compare")(to_native(one), to_native(other), result);
  *result = abi_of(comparisons, *result);
  return code;
}
int special(Topo_test, abi::Comm comm, int* topology) {
  const int code = find<MPI_Comm, int*>("PMPI_Topo_test")(to_native(comm), topology);
  *topology = abi_of(topologies, *topology);
  return code;
}
int special(Comm_create_keyval, abi::Comm_copy_attr_function* copy, abi::Comm_delete_attr_function* remove, int* keyval,
            void* extra) {
  return find<MPI_Comm_copy_attr_function*, MPI_Comm_delete_attr_function*, int*, void*>("PMPI_Comm_create_keyval")(
      copy == nullptr ? MPI_COMM_NULL_COPY_FN : copy_attribute,
      remove == nullptr ? MPI_COMM_NULL_DELETE_FN : delete_attribute, keyval, new Attribute{copy, remove, extra});
}
int special(Comm_free_keyval, int* keyval) {
  const int code = find<int*>("PMPI_Comm_free_keyval")(keyval);
  if (code == MPI_SUCCESS) *keyval = 0;
  return code;
}
int special(Comm_get_attr, abi::Comm comm, int keyval, void* value, int* flag) {
  return find<MPI_Comm, int, void*, int*>("PMPI_Comm_get_attr")(
      to_native(comm), keyval == abi::tag_ub ? MPI_TAG_UB : keyval, value, flag);
}
int special(Type_get_envelope, abi::Datatype type, int* integers, int* addresses, int* types, int* combiner) {
  const int code = find<MPI_Datatype, int*, int*, int*, int*>("PMPI_Type_get_envelope")(to_native(type), integers,
                                                                                        addresses, types, combiner);
  *combiner = abi_of(combiners, *combiner);
  return code;
}
int special(Type_get_contents, abi::Datatype type, int integers, int addresses, int types, int* of_integers,
            MPI_Aint* of_addresses, abi::Datatype* of_types) {
  std::vector<MPI_Datatype> natives(static_cast<std::size_t>(types), MPI_DATATYPE_NULL);
  const int code = find<MPI_Datatype, int, int, int, int*, MPI_Aint*, MPI_Datatype*>("PMPI_Type_get_contents")(
      to_native(type), integers, addresses, types, of_integers, of_addresses, natives.data());
  for (int i = 0; i < types; ++i) of_types[i] = to_abi<abi::Datatype>(natives[static_cast<std::size_t>(i)]);
  return code;
}
int special(Grequest_start, abi::Grequest_query_function* query, abi::Grequest_free_function* free,
            abi::Grequest_cancel_function* cancel, void* extra, abi::Request* made) {
  MPI_Request native = MPI_REQUEST_NULL;
  const int code = find<MPI_Grequest_query_function*, MPI_Grequest_free_function*, MPI_Grequest_cancel_function*, void*,
                        MPI_Request*>("PMPI_Grequest_start")(query_generalised, free_generalised, cancel_generalised,
                                                             new Generalised{query, free, cancel, extra}, &native);
  *made = to_abi<abi::Request>(native);
  return code;
}
int special(Op_create, abi::User_function* function, int commutes, abi::Op* made) {
  static std::size_t count = 0;
  if (count == most_made) return MPI_ERR_NO_MEM;
  user_functions[count] = function;
  MPI_Op native = MPI_OP_NULL;
  const int code = find<MPI_User_function*, int, MPI_Op*>("PMPI_Op_create")(
      user_function(count++, std::make_index_sequence<most_made>()), commutes, &native);
  *made = to_abi<abi::Op>(native);
  return code;
}
int special(Comm_create_errhandler, abi::Comm_errhandler_function* function, abi::Errhandler* made) {
  static std::size_t count = 0;
  if (count == most_made) return MPI_ERR_NO_MEM;
  error_functions[count] = function;
  MPI_Errhandler native = MPI_ERRHANDLER_NULL;
  const int code = find<MPI_Comm_errhandler_function*, MPI_Errhandler*>("PMPI_Comm_create_errhandler")(
      error_function(count++, std::make_index_sequence<most_made>()), &native);
  *made = to_abi<abi::Errhandler>(native);
  return code;
}

template <class Name, class Function>
struct PassOn;
template <class Name, class... A>
struct PassOn<Name, int(A...)> {
  static const char* text;
  static int call(A... arguments) {
    if constexpr (requires { special(Name{}, arguments...); })
      return special(Name{}, arguments...);
    else
      return pass_on(text, arguments...);
  }
};

}  // namespace

}  // namespace stand_in

// Both names of each function; the MPI's header has them already, with other types.
#define ABI(name, ...)                                                                                             \
  template <>                                                                                                      \
  const char* stand_in::PassOn<stand_in::name, int(__VA_ARGS__)>::text = "PMPI_" #name;                            \
  extern "C" __attribute__((used)) auto find_##name() {                                                            \
    return &stand_in::PassOn<stand_in::name, int(__VA_ARGS__)>::call;                                              \
  }                                                                                                                \
  extern "C"                                                                                                       \
      __attribute__((visibility("default"), ifunc("find_" #name))) int abi_##name(__VA_ARGS__) asm("PMPI_" #name); \
  extern "C"                                                                                                       \
      __attribute__((visibility("default"), ifunc("find_" #name))) int weak_##name(__VA_ARGS__) asm("MPI_" #name);
#include "tests/abi/all_functions.def"
#undef ABI

extern "C" {
__attribute__((visibility("default"))) int abi_Pcontrol(const int, ...) asm("PMPI_Pcontrol");
__attribute__((visibility("default"), alias("PMPI_Pcontrol"))) int weak_Pcontrol(const int, ...) asm("MPI_Pcontrol");
int abi_Pcontrol(const int, ...) {
  return MPI_SUCCESS;
}
}
