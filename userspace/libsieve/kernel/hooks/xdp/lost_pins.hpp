// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What remains of a controller that died inside libxdp.
//
// libxdp pins the programs behind a dispatcher in the folder dispatch-INTERFACE-ID before it attaches the
// dispatcher, and removes the folder after it has detached the dispatcher. A process that is killed in
// between leaves the folder, and libxdp never removes it. The pins keep our program in memory, and with it
// every filter of its table.
#pragma once

namespace sieve::kernel::xdp {

// Removes folders with a program that `load` attached, or was about to attach, in this network namespace, if
// the program is not in force at its interface. Folders of other programs, of other namespaces and of
// interfaces that are not in this namespace stay, and so does what cannot be judged. The caller holds the
// lock among controllers.
void remove_lost_pins();

} // namespace sieve::kernel::xdp
