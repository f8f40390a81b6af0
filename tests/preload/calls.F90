! The Fortran bindings: one program, built three times, with -DBINDING_MPIFH, -DBINDING_USEMPI and -DBINDING_F08.
! Each collective is called a known number of times, with and without MPI_IN_PLACE, and its result is checked. Each
! rank prints "counts MPI_Allreduce=12 ..." for the runner, which compares the sum with the report.
#ifdef BINDING_F08
#define COMM_HANDLE type(MPI_Comm)
#define OP_HANDLE type(MPI_Op)
#define TYPE_HANDLE type(MPI_Datatype)
#define REQUEST_HANDLE type(MPI_Request)
#else
#define COMM_HANDLE integer
#define OP_HANDLE integer
#define TYPE_HANDLE integer
#define REQUEST_HANDLE integer
#endif

#ifdef BINDING_F08
subroutine keep_larger(in, inout, length, datatype)
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  use mpi_f08
  implicit none
  type(c_ptr), value :: in, inout
  integer :: length
  type(MPI_Datatype) :: datatype
  integer, pointer :: a(:), b(:)
  call c_f_pointer(in, a, [length])
  call c_f_pointer(inout, b, [length])
  if (datatype == MPI_INTEGER) b = max(a, b)
end subroutine
#else
subroutine keep_larger(in, inout, length, datatype)
  implicit none
  integer :: length, datatype
  integer :: in(length), inout(length)
  if (datatype /= 0) inout = max(in, inout)
end subroutine
#endif

program calls
#if defined(BINDING_F08)
  use mpi_f08
#elif defined(BINDING_USEMPI)
  use mpi
#endif
  implicit none
#ifdef BINDING_MPIFH
  include 'mpif.h'
#endif
#ifdef BINDING_F08
  procedure(MPI_User_function) :: keep_larger
#else
  external :: keep_larger
#endif

  integer, parameter :: n = 6
  COMM_HANDLE :: half, copy
  OP_HANDLE :: larger
  TYPE_HANDLE :: pair
  REQUEST_HANDLE :: request
  integer :: ierror, rank, ranks, half_rank, half_ranks, i, r, root, failures
  integer :: barriers, bcasts, gathers, scatters, allgathers, alltoalls, reduces, allreduces, scans, iallreduces
  integer :: send(n), receive(n)
  integer, asynchronous :: later(n)
  integer, allocatable :: many(:), many_received(:)
  double precision :: x(2), y(2)
  character(len=400) :: line
  integer :: total

  failures = 0
  barriers = 0
  bcasts = 0
  gathers = 0
  scatters = 0
  allgathers = 0
  alltoalls = 0
  reduces = 0
  allreduces = 0
  scans = 0
  iallreduces = 0

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  allocate(many(n * ranks), many_received(n * ranks))
  total = ranks * (ranks - 1) / 2  ! sum of the ranks' numbers

  do i = 1, 2
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    barriers = barriers + 1
  end do

  do i = 1, 3
    root = mod(i, ranks)
    send = -1
    if (rank == root) send = i
    call MPI_Bcast(send, n, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
    bcasts = bcasts + 1
    call check(all(send == i), 'Bcast')
  end do

  do i = 1, 5
    send = rank + i
    receive = -1
    call MPI_Allreduce(send, receive, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    allreduces = allreduces + 1
    call check(all(receive == total + i * ranks), 'Allreduce')
  end do

  do i = 1, 7
    receive = rank + i
    call MPI_Allreduce(MPI_IN_PLACE, receive, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    allreduces = allreduces + 1
    call check(all(receive == total + i * ranks), 'Allreduce in place')
  end do

  ! A pair of value and place, as the Fortran type for MAXLOC.
  x = [dble(rank), dble(10 * rank)]
  call MPI_Allreduce(x, y, 1, MPI_2DOUBLE_PRECISION, MPI_MAXLOC, MPI_COMM_WORLD, ierror)
  allreduces = allreduces + 1
  call check(y(1) == dble(ranks - 1) .and. y(2) == dble(10 * (ranks - 1)), 'Allreduce of MAXLOC')

  ! An operation of the program's own, written in Fortran.
  call MPI_Op_create(keep_larger, .true., larger, ierror)
  do i = 1, 4
    send = rank * i
    call MPI_Allreduce(send, receive, n, MPI_INTEGER, larger, MPI_COMM_WORLD, ierror)
    allreduces = allreduces + 1
    call check(all(receive == (ranks - 1) * i), 'Allreduce with an own operation')
  end do
  call MPI_Op_free(larger, ierror)

  ! Every second element of an array.
  call MPI_Type_vector(n / 2, 1, 2, MPI_INTEGER, pair, ierror)
  call MPI_Type_commit(pair, ierror)
  send = -1
  if (rank == 0) send = [1, 2, 3, 4, 5, 6]
  call MPI_Bcast(send, 1, pair, 0, MPI_COMM_WORLD, ierror)
  bcasts = bcasts + 1
  call check(all(send(1:n:2) == [1, 3, 5]), 'Bcast of a vector type')
  call check(rank == 0 .or. all(send(2:n:2) == -1), 'Bcast of a vector type leaves the gaps')
  call MPI_Type_free(pair, ierror)

  do i = 1, 6
    root = mod(i, ranks)
    receive = -1
    if (mod(i, 2) == 0 .and. rank == root) then
      receive = rank + i
      call MPI_Reduce(MPI_IN_PLACE, receive, n, MPI_INTEGER, MPI_SUM, root, MPI_COMM_WORLD, ierror)
    else
      send = rank + i
      call MPI_Reduce(send, receive, n, MPI_INTEGER, MPI_SUM, root, MPI_COMM_WORLD, ierror)
    end if
    reduces = reduces + 1
    if (rank == root) call check(all(receive == total + i * ranks), 'Reduce')
  end do

  do i = 1, 8
    do r = 0, ranks - 1
      many(1 + r * n : (r + 1) * n) = 100 * rank + r + i
    end do
    if (mod(i, 2) == 0) then
      many_received = many
      call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INTEGER, many_received, n, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    else
      call MPI_Alltoall(many, n, MPI_INTEGER, many_received, n, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    end if
    alltoalls = alltoalls + 1
    do r = 0, ranks - 1
      call check(all(many_received(1 + r * n : (r + 1) * n) == 100 * r + rank + i), 'Alltoall')
    end do
  end do

  do i = 1, 9
    root = mod(i, ranks)
    send = 10 * rank + i
    many = -1
    if (mod(i, 2) == 0 .and. rank == root) then
      many(1 + rank * n : (rank + 1) * n) = send
      call MPI_Gather(MPI_IN_PLACE, n, MPI_INTEGER, many, n, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
    else
      call MPI_Gather(send, n, MPI_INTEGER, many, n, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
    end if
    gathers = gathers + 1
    if (rank == root) then
      do r = 0, ranks - 1
        call check(all(many(1 + r * n : (r + 1) * n) == 10 * r + i), 'Gather')
      end do
    end if
  end do

  do i = 1, 10
    root = mod(i, ranks)
    do r = 0, ranks - 1
      many(1 + r * n : (r + 1) * n) = 10 * r + i
    end do
    receive = -1
    call MPI_Scatter(many, n, MPI_INTEGER, receive, n, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
    scatters = scatters + 1
    call check(all(receive == 10 * rank + i), 'Scatter')
  end do

  do i = 1, 11
    many = -1
    if (mod(i, 2) == 0) then
      many(1 + rank * n : (rank + 1) * n) = 10 * rank + i
      call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, many, n, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    else
      send = 10 * rank + i
      call MPI_Allgather(send, n, MPI_INTEGER, many, n, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    end if
    allgathers = allgathers + 1
    do r = 0, ranks - 1
      call check(all(many(1 + r * n : (r + 1) * n) == 10 * r + i), 'Allgather')
    end do
  end do

  do i = 1, 13
    send = i
    call MPI_Scan(send, receive, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    scans = scans + 1
    call check(all(receive == i * (rank + 1)), 'Scan')
  end do

  do i = 1, 14
    later = rank + i
    call MPI_Iallreduce(MPI_IN_PLACE, later, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    iallreduces = iallreduces + 1
    call check(all(later == total + i * ranks), 'Iallreduce')
  end do

  ! Communicators made and freed through the Fortran binding.
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, ierror)
  call MPI_Comm_dup(half, copy, ierror)
  call MPI_Comm_rank(half, half_rank, ierror)
  call MPI_Comm_size(half, half_ranks, ierror)
  do i = 1, 5
    receive = half_rank + i
    call MPI_Allreduce(MPI_IN_PLACE, receive, n, MPI_INTEGER, MPI_SUM, half, ierror)
    call check(all(receive == half_ranks * (half_ranks - 1) / 2 + i * half_ranks), 'Allreduce on a half')
    call MPI_Allreduce(MPI_IN_PLACE, receive, n, MPI_INTEGER, MPI_MAX, copy, ierror)
    call check(all(receive == half_ranks * (half_ranks - 1) / 2 + i * half_ranks), 'Allreduce on a copy')
    allreduces = allreduces + 2
  end do
  call MPI_Comm_free(copy, ierror)
  call MPI_Comm_free(half, ierror)

#ifdef BINDING_F08
  ! Without the error argument, which is optional in this binding.
  call MPI_Barrier(MPI_COMM_WORLD)
  barriers = barriers + 1
  receive = rank
  call MPI_Allreduce(MPI_IN_PLACE, receive, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  allreduces = allreduces + 1
  call check(all(receive == total), 'Allreduce without ierror')
#endif

  write(line, '(20(a,i0))') 'counts MPI_Barrier=', barriers, ' MPI_Bcast=', bcasts, ' MPI_Gather=', gathers, &
    ' MPI_Scatter=', scatters, ' MPI_Allgather=', allgathers, ' MPI_Alltoall=', alltoalls, ' MPI_Reduce=', reduces, &
    ' MPI_Allreduce=', allreduces, ' MPI_Scan=', scans, ' MPI_Iallreduce=', iallreduces
  if (failures > 0) line = trim(line)//' FAILED'
  print '(a)', trim(line)
  call flush(6)
  call MPI_Finalize(ierror)
  if (failures > 0) stop 1

contains

  subroutine check(good, what)
    logical, intent(in) :: good
    character(len=*), intent(in) :: what
    if (.not. good) then
      failures = failures + 1
      write(0, '(a,a)') 'failed: ', what
    end if
  end subroutine

end program
