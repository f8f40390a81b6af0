! Weakly consistent collectives in Fortran: papaya_weak.h says what each does. Compile this file with your program, whose
! compiler writes the module, and link libpapaya-weak-openmpi or libpapaya-weak-mpich:
!
!   mpifort papaya.f90 app.f90 -lpapaya-weak-openmpi
!
! Communicators, types and operations are integers, those of `use mpi`; with mpi_f08 they are MPI_COMM_WORLD%MPI_VAL and
! so on. Functions return MPI_SUCCESS or an error of MPI's. Contributions and results are contiguous.
module papaya
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_f_pointer, c_int, c_long_long, c_null_char, c_null_ptr, &
                                         c_ptr, c_size_t
  implicit none
  private
  public :: papaya_weak_status, papaya_weak_null, papaya_of_data, papaya_of_ranks, papaya_error
  public :: papaya_ssp_allreduce_create, papaya_ssp_accumulate_create, papaya_threshold_bcast_create
  public :: papaya_threshold_reduce_create, papaya_sparse_allreduce_create
  public :: papaya_partial_allreduce_create, papaya_weak_withdraw, papaya_group_allreduce_create
  public :: papaya_weak_call, papaya_weak_call_in_place, papaya_weak_start, papaya_weak_test, papaya_weak_wait
  public :: papaya_weak_flush, papaya_weak_set_limit, papaya_weak_get_info, papaya_weak_free

  ! A collective is a type(c_ptr).
  type(c_ptr), parameter :: papaya_weak_null = c_null_ptr
  integer(c_int), parameter :: papaya_of_data = 0, papaya_of_ranks = 1

  type, bind(c) :: papaya_weak_status
    integer(c_long_long) :: clock, oldest, own, unused
    integer(c_int) :: ranks
    integer(c_long_long) :: elements
    real(c_double) :: share, residual, waited
  end type

  interface
    function create_ssp(comm, count, type, op, slack, algorithm, collective) &
        bind(c, name="papaya_ssp_allreduce_create_f") result(error)
      import :: c_char, c_int, c_long_long, c_ptr
      integer(c_int), value :: comm, type, op, slack
      integer(c_long_long), value :: count
      character(kind=c_char), intent(in) :: algorithm(*)
      type(c_ptr), intent(out) :: collective
      integer(c_int) :: error
    end function
    function create_total(comm, count, type, op, slack, algorithm, collective) &
        bind(c, name="papaya_ssp_accumulate_create_f") result(error)
      import :: c_char, c_int, c_long_long, c_ptr
      integer(c_int), value :: comm, type, op, slack
      integer(c_long_long), value :: count
      character(kind=c_char), intent(in) :: algorithm(*)
      type(c_ptr), intent(out) :: collective
      integer(c_int) :: error
    end function
    function create_bcast(comm, count, type, threshold, of, root, collective) &
        bind(c, name="papaya_threshold_bcast_create_f") result(error)
      import :: c_double, c_int, c_long_long, c_ptr
      integer(c_int), value :: comm, type, of, root
      integer(c_long_long), value :: count
      real(c_double), value :: threshold
      type(c_ptr), intent(out) :: collective
      integer(c_int) :: error
    end function
    function create_reduce(comm, count, type, op, threshold, of, root, collective) &
        bind(c, name="papaya_threshold_reduce_create_f") result(error)
      import :: c_double, c_int, c_long_long, c_ptr
      integer(c_int), value :: comm, type, op, of, root
      integer(c_long_long), value :: count
      real(c_double), value :: threshold
      type(c_ptr), intent(out) :: collective
      integer(c_int) :: error
    end function
    function create_sparse(comm, count, type, share, collective) &
        bind(c, name="papaya_sparse_allreduce_create_f") result(error)
      import :: c_double, c_int, c_long_long, c_ptr
      integer(c_int), value :: comm, type
      integer(c_long_long), value :: count
      real(c_double), value :: share
      type(c_ptr), intent(out) :: collective
      integer(c_int) :: error
    end function

    function create_partial(comm, count, type, op, algorithm, collective) &
        bind(c, name="papaya_partial_allreduce_create_f") result(error)
      import :: c_char, c_int, c_long_long, c_ptr
      integer(c_int), value :: comm, type, op
      integer(c_long_long), value :: count
      character(kind=c_char), intent(in) :: algorithm(*)
      type(c_ptr), intent(out) :: collective
      integer(c_int) :: error
    end function

    function create_group(comm, count, type, op, group, period, collective) &
        bind(c, name="papaya_group_allreduce_create_f") result(error)
      import :: c_int, c_long_long, c_ptr
      integer(c_int), value :: comm, type, op, group, period
      integer(c_long_long), value :: count
      type(c_ptr), intent(out) :: collective
      integer(c_int) :: error
    end function

    function papaya_weak_call(collective, contribution, result, status) bind(c) result(error)
      import :: c_int, c_ptr, papaya_weak_status
      type(c_ptr), value :: collective
      type(*), intent(in) :: contribution(*)
      type(*) :: result(*)
      type(papaya_weak_status), intent(out), optional :: status
      integer(c_int) :: error
    end function
    function papaya_weak_call_in_place(collective, result, status) bind(c) result(error)
      import :: c_int, c_ptr, papaya_weak_status
      type(c_ptr), value :: collective
      type(*) :: result(*)
      type(papaya_weak_status), intent(out), optional :: status
      integer(c_int) :: error
    end function
    ! Both buffers are asynchronous in the caller.
    function papaya_weak_start(collective, contribution, result) bind(c) result(error)
      import :: c_int, c_ptr
      type(c_ptr), value :: collective
      type(*), intent(in), asynchronous :: contribution(*)
      type(*), asynchronous :: result(*)
      integer(c_int) :: error
    end function
    ! `flag`: 1 if the call is done, else 0.
    function papaya_weak_test(collective, flag, status) bind(c) result(error)
      import :: c_int, c_ptr, papaya_weak_status
      type(c_ptr), value :: collective
      integer(c_int), intent(out) :: flag
      type(papaya_weak_status), intent(out), optional :: status
      integer(c_int) :: error
    end function
    function papaya_weak_wait(collective, seconds, flag, status) bind(c) result(error)
      import :: c_double, c_int, c_ptr, papaya_weak_status
      type(c_ptr), value :: collective
      real(c_double), value :: seconds
      integer(c_int), intent(out) :: flag
      type(papaya_weak_status), intent(out), optional :: status
      integer(c_int) :: error
    end function
    function papaya_weak_withdraw(collective, contributions, calls) bind(c) result(error)
      import :: c_int, c_long_long, c_ptr
      type(c_ptr), value :: collective
      type(*) :: contributions(*)
      integer(c_long_long), intent(out) :: calls
      integer(c_int) :: error
    end function
    function papaya_weak_flush(collective) bind(c) result(error)
      import :: c_int, c_ptr
      type(c_ptr), value :: collective
      integer(c_int) :: error
    end function
    function papaya_weak_set_limit(collective, seconds) bind(c) result(error)
      import :: c_double, c_int, c_ptr
      type(c_ptr), value :: collective
      real(c_double), value :: seconds
      integer(c_int) :: error
    end function
    function papaya_weak_free(collective) bind(c) result(error)
      import :: c_int, c_ptr
      type(c_ptr), intent(inout) :: collective
      integer(c_int) :: error
    end function
    function get_info(collective, text, bytes) bind(c, name="papaya_weak_get_info") result(error)
      import :: c_char, c_int, c_ptr
      type(c_ptr), value :: collective
      character(kind=c_char), intent(out) :: text(*)
      integer(c_int), value :: bytes
      integer(c_int) :: error
    end function
    function last_error() bind(c, name="papaya_error") result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function
    function length_of(text) bind(c, name="strlen") result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function
  end interface

contains

  integer(c_int) function papaya_ssp_allreduce_create(comm, count, type, op, slack, collective, algorithm) result(error)
    integer, intent(in) :: comm, count, type, op, slack
    type(c_ptr), intent(out) :: collective
    character(*), intent(in), optional :: algorithm
    error = create_ssp(int(comm, c_int), int(count, c_long_long), int(type, c_int), int(op, c_int), int(slack, c_int), &
                       in_c(algorithm), collective)
  end function

  integer(c_int) function papaya_ssp_accumulate_create(comm, count, type, op, slack, collective, algorithm) result(error)
    integer, intent(in) :: comm, count, type, op, slack
    type(c_ptr), intent(out) :: collective
    character(*), intent(in), optional :: algorithm
    error = create_total(int(comm, c_int), int(count, c_long_long), int(type, c_int), int(op, c_int), int(slack, c_int), &
                         in_c(algorithm), collective)
  end function

  integer(c_int) function papaya_threshold_bcast_create(comm, count, type, threshold, of, root, collective) result(error)
    integer, intent(in) :: comm, count, type, root
    real(c_double), intent(in) :: threshold
    integer(c_int), intent(in) :: of
    type(c_ptr), intent(out) :: collective
    error = create_bcast(int(comm, c_int), int(count, c_long_long), int(type, c_int), threshold, of, int(root, c_int), &
                         collective)
  end function

  integer(c_int) function papaya_threshold_reduce_create(comm, count, type, op, threshold, of, root, collective) &
      result(error)
    integer, intent(in) :: comm, count, type, op, root
    real(c_double), intent(in) :: threshold
    integer(c_int), intent(in) :: of
    type(c_ptr), intent(out) :: collective
    error = create_reduce(int(comm, c_int), int(count, c_long_long), int(type, c_int), int(op, c_int), threshold, of, &
                          int(root, c_int), collective)
  end function

  integer(c_int) function papaya_sparse_allreduce_create(comm, count, type, share, collective) result(error)
    integer, intent(in) :: comm, count, type
    real(c_double), intent(in) :: share
    type(c_ptr), intent(out) :: collective
    error = create_sparse(int(comm, c_int), int(count, c_long_long), int(type, c_int), share, collective)
  end function

  integer(c_int) function papaya_partial_allreduce_create(comm, count, type, op, collective, algorithm) result(error)
    integer, intent(in) :: comm, count, type, op
    type(c_ptr), intent(out) :: collective
    character(*), intent(in), optional :: algorithm
    error = create_partial(int(comm, c_int), int(count, c_long_long), int(type, c_int), int(op, c_int), in_c(algorithm), &
                           collective)
  end function

  integer(c_int) function papaya_group_allreduce_create(comm, count, type, op, group, period, collective) result(error)
    integer, intent(in) :: comm, count, type, op, group, period
    type(c_ptr), intent(out) :: collective
    error = create_group(int(comm, c_int), int(count, c_long_long), int(type, c_int), int(op, c_int), int(group, c_int), &
                         int(period, c_int), collective)
  end function

  ! What is in force: algorithm, parameters, and over what.
  integer(c_int) function papaya_weak_get_info(collective, text) result(error)
    type(c_ptr), intent(in) :: collective
    character(:), allocatable, intent(out) :: text
    character(kind=c_char) :: buffer(256)
    integer :: i
    buffer = c_null_char
    error = get_info(collective, buffer, int(size(buffer), c_int))
    text = ""
    do i = 1, size(buffer)
      if (buffer(i) == c_null_char) exit
      text = text//buffer(i)
    end do
  end function

  ! What the last function that failed had to say.
  function papaya_error() result(text)
    character(:), allocatable :: text
    character(kind=c_char), pointer :: characters(:)
    type(c_ptr) :: address
    integer :: i
    address = last_error()
    call c_f_pointer(address, characters, [length_of(address)])
    allocate (character(size(characters)) :: text)
    do i = 1, size(characters)
      text(i:i) = characters(i)
    end do
  end function

  function in_c(text) result(characters)
    character(*), intent(in), optional :: text
    character(:, c_char), allocatable :: characters
    characters = c_null_char
    if (present(text)) characters = trim(text)//c_null_char
  end function
end module
