// Which file a descriptor of papaya's was opened for. A program may close descriptors that are not its own, and then
// get their numbers for files of its own. For libpapaya.so as well, which has no C++ library.
#pragma once

#include <sys/stat.h>

namespace papaya {

class FileIdentity {
 public:
  // Of the file that is open now. False if there is none; nothing has this identity then.
  bool note(int descriptor) noexcept {
    struct stat now {};
    is_known_ = fstat(descriptor, &now) == 0;
    device_ = now.st_dev;
    number_ = now.st_ino;
    return is_known_;
  }
  bool is_of(int descriptor) const noexcept {
    struct stat now {};
    return is_known_ && descriptor >= 0 && fstat(descriptor, &now) == 0 && now.st_dev == device_ &&
           now.st_ino == number_;
  }
  dev_t device() const noexcept { return device_; }
  ino_t number() const noexcept { return number_; }

 private:
  bool is_known_ = false;
  dev_t device_ = 0;
  ino_t number_ = 0;
};

}  // namespace papaya
