// How far a connection between two ranks is.
#pragma once

namespace papaya {

enum class Link { under_way, up, refused };

}  // namespace papaya
