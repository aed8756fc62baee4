// sweep_sockets: removes what killed processes have left.
#pragma once

#include "tiering/live/socket_place.h"

namespace uptier::tiering {

// Removes the sockets beside `place` that are named by the id of a process that does not exist, and
// on which nobody listens.
void sweep_sockets(const SocketPlace& place);

}  // namespace uptier::tiering
