! Each rank adds to a sum that all share, and goes on with one that is at most four calls old.
program stale_sum
  use mpi
  use papaya
  use iso_c_binding, only: c_ptr
  implicit none
  integer, parameter :: elements = 1000, calls = 100, slack = 4
  double precision :: gradient(elements), total(elements), waited
  type(papaya_weak_status) :: status
  type(c_ptr) :: sum_of_all
  character(:), allocatable :: info
  integer :: rank, call_number, error
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  error = papaya_ssp_accumulate_create(MPI_COMM_WORLD, elements, MPI_DOUBLE_PRECISION, MPI_SUM, slack, sum_of_all)
  error = papaya_weak_get_info(sum_of_all, info)
  if (rank == 0) print "(a)", info
  waited = 0
  do call_number = 1, calls
    gradient = 1
    error = papaya_weak_call(sum_of_all, gradient, total, status)
    waited = waited + status%waited
  end do
  print "(a, i0, a, f0.0, a, i0, a, f0.1, a)", 'rank ', rank, ': the last sum is ', total(1), &
    ' of contributions from call ', status%oldest, ' on; waited ', waited*1e3, ' ms'
  error = papaya_weak_free(sum_of_all)
  call MPI_Finalize(error)
end program
