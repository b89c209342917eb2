# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""The lists of the sets: where each comes from, what it may hold, and how its lines are written."""

FILE, FOLDER, WEB, COMMAND, CROWDSEC = "file", "folder", "web", "command", "crowdsec"
CORE, SHARED, STRANGERS = 130, 60, 40
LISTED_ONLY = 20  # of the set that follows CrowdSec: members of which there is no decision
RANGES = "-ranges"  # of a set that follows CrowdSec: where its prefixes are
# Kinds that can hold single addresses; "" is whatever the daemon chooses.
FILTERS = ["xorsat", "blocked", "bloom", "dleft64"]
EXACT = ["exact", "ranges"]


def address(number, index):
    """Every fourth one is of IPv6."""
    return f"2001:db8:{number}:{index}::1" if index % 4 == 3 else f"{number}.{index}.7.1"


# Addresses that any list may hold, and ones that none ever holds.
COMMON = [address(99, index) for index in range(SHARED)]
NEVER = [address(77, index) for index in range(STRANGERS)]
# What a guard protects from some lists.
PROTECTED = ["88.1.0.0/16", "2001:db8:88::/48"]
IN_PROTECTED = ["88.1.2.3", "2001:db8:88:1::5"]
PROTECTED_AT_INTERFACES = "88.2.0.1"


def beside(one):
    """The address that shares a prefix with this one."""
    return one[:-1] + "2"


def prefix(one):
    """Holds this address and the one beside it."""
    return one[:-1] + ("/124" if ":" in one else "0/28")


def is_range(one):
    """Whether CrowdSec decides about this address's prefix, and not about the address."""
    return int(one.split(":")[3] if ":" in one else one.split(".")[1]) % 3 == 0


def draw_exception(draw, one, prefixes):
    """(what a file of exceptions says, the members that it takes out)"""
    form = draw.randrange(6)
    if form == 0:
        return f"{one}/{128 if ':' in one else 32}", {one}
    if form == 1:
        return f"{one}-{one}", {one}
    if form == 2:
        return f"{one}-{beside(one)}", {one, beside(one)}
    if form == 3:
        return f"{one[:-1]}0/{127 if ':' in one else 31}", {one}
    if form == 4 and prefixes:
        return prefix(one), {one, beside(one)}
    return one, {one}


class ListOfSet:
    """A list that changes: its source, what it says now, and which kinds can hold it."""

    def __init__(self, number, letter, source, kinds, prefixes=False, images=(), skips_own=False, protects=False,
                 unchecked=False, has_second=False):
        self.letter, self.source, self.kinds, self.prefixes = letter, source, kinds, prefixes
        self.images = images  # the kinds of the images that it may be, in place of a text
        self.skips_own, self.protects, self.unchecked = skips_own, protects, unchecked
        self.has_second = has_second  # whether another server says a part of the core, too
        self.version = 0  # rises with each change of the source
        self.core = [address(20 + number, index) for index in range(CORE)]
        self.good = True  # whether the daemon must take what the source says now
        self.told = False  # whether it must say that it does not
        self.bad_if_dropped = False  # whether that is so as long as the set drops
        self.taken = False  # whether the daemon is known to have a good list
        self.newest = frozenset(self.core)

    def place(self):
        """The name of a source that is a file or on the server."""
        return f"{self.letter}{self.version or ''}"

    def second_place(self):
        return f"{self.place()}-second"

    def text_of_second(self):
        return self.text(self.core[: 2 * LISTED_ONLY])

    def plain(self):
        """Whether the source is a file of lines."""
        return self.source in (FILE, FOLDER, COMMAND) and not self.images

    def changes_live(self):
        return self.kinds == ["ddlcbf"]

    def is_live(self, options):
        """Whether the daemon changes a set with these options in place."""
        return self.changes_live() and not options["verify"]

    def may_verify(self, kind):
        return not self.prefixes and not self.images and self.source != CROWDSEC and kind not in EXACT

    def may_except(self):
        return not self.images and not self.changes_live()

    def line(self, one):
        return prefix(one) if self.prefixes else one

    def text(self, addresses):
        return "".join(f"{self.line(one)}\n" for one in sorted(addresses))

    def decisions(self, addresses):
        return {("Range", prefix(one)) if is_range(one) else ("Ip", one) for one in addresses
                if one not in self.core[:LISTED_ONLY]}

    def text_beside(self):
        """The list that a set has besides CrowdSec. Of some of its entries there are decisions as well."""
        return "".join(f"{prefix(one) if is_range(one) else one}\n" for one in self.core[: 2 * LISTED_ONLY])

    def members(self, addresses):
        """{what follows the set's name: the addresses that this set holds}"""
        if self.source == CROWDSEC:
            ranges = frozenset(one for one in addresses if is_range(one))
            return {"": frozenset(addresses) - ranges, RANGES: ranges | {beside(one) for one in ranges}}
        if self.prefixes:
            return {"": frozenset(addresses) | {beside(one) for one in addresses}}
        return {"": frozenset(addresses)}

    def sets(self):
        """What follows the set's name, for each set that this list makes."""
        return ["", RANGES] if self.source == CROWDSEC else [""]

    def probes(self, addresses):
        """The addresses to send packets from, to see whether these are in the set."""
        if self.prefixes or self.source == CROWDSEC:
            return [*addresses, *map(beside, addresses)]
        return list(addresses)
