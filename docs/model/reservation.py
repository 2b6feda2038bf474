"""Adversarial model of a page log's reservation: ONE dynamic inequality, counted with what the tree is.

The rule that is built, aside=1. Where nothing else gains, a sweep writes all inner nodes to blocks apart, which the next one frees:
    leaves <= (1 - 1/D) (N - R) B          leaves and inner nodes u with growth, N = good - spare - pinned
    R = M U + 1 + ceil(W/B), M = 2         U = ceil((u + what a change adds)/B) blocks for inner nodes apart
    before each update: whole free blocks + min(U, those apart) >= R + spare left
    sticky=0: sweeps of the usual kind go on behind such a one; known=0: an opening does not know what stands apart

The rule before, aside=0, with inner nodes among leaves:
    w/(1-s) + E(u)*B + W + c <= N*B        w = nodes + growth, u = inner nodes + growth, N = good - spare - 2 - pinned
    E(u) = max(1, ceil((u+1)/(q*s*B)))     S = 1/s; S = 0: the s that gives most for this u: E ~ sqrt((u+1)*N/(q*B)), s = (u+1)/(q*E*B)
    before each update: whole free blocks >= E(u now) + ceil((W - rest of the open block)/B) + spare left
    ride=1: in a sweep inner nodes share the page of the last node written below; u = min(inner, alone + first of a storey)
    whole=0: free pages >= E(u)*B + W instead;  blind=1: one victim is moved page by page whatever it gains (both break)

Path-copying B+-tree, T levels a page; alone nodes have pages of their own; entries of varied length; pending updates in RAM;
checkpoints (also inside a batch); names that pin blocks; halves; refused programs, failed erases; cuts anywhere, several in a
row; replay with other buffers. Run: python3 reservation.py FIRST LAST STEPS [aside=0 q=1 S=8 ride=1 ..] (pypy3: ten times as fast)"""
import random, sys
from bisect import bisect_left, bisect_right
from math import isqrt

class Cut(Exception): pass
class Broken(Exception): pass
class Node:
    __slots__ = ('lv', 'k', 'c', 'z', 'a', 'b', 'low', 'dead')   # z: sizes; a: alone if below Sim.alone; low: lowest of its page
    def __init__(s, lv, k, c, z, a): s.lv, s.k, s.c, s.z, s.a, s.b, s.low, s.dead = lv, k, c, z, a, -1, False, False
    def copy(s): return Node(s.lv, s.k[:], s.c[:] if s.lv else None, s.z[:], s.a)

def growth(lev, n, p, r0, r1):
    """(all, inner, height) that n puts add at most to a tree with lev[i] nodes at level i, in any order."""
    if n == 0: return 0, 0, len(lev)
    s = p * n; total = 0; leaves = 0
    for lv, nodes in enumerate(lev):
        s = min(s, nodes + s // (r1 if lv else r0)); total += s
        if lv == 0: leaves = s
    h = len(lev)                                              # and new roots
    while s: s //= r1; total += 1 + s; h += 1
    return total, total - leaves, h

class Sim:
    def __init__(s, r, N=40, B=8, F=10, T=1, S=8, q=1, var=False, halves=False, blind=False, c=0, buf=0, alone=0.0, spent=False, whole=True, ride=False, aside=True, D=9, M=2, sticky=True, known=True):
        s.whole, s.ride, s.own = whole, ride, 0
        s.by, s.D, s.M, s.sticky, s.known = aside and not halves, D, M, sticky, known; s.aside, s.parted, s.other, s.is_aside = set(), False, (-1, 0), False
        s.r, s.B, s.F, s.T, s.S, s.q, s.var, s.halves, s.blind, s.c, s.buf, s.alone = r, B, F, T, S, q, var, halves, blind, c, buf, alone
        s.m = max(1, F // 4) if var else 1                     # longest entry
        s.p, s.r0, s.r1 = (2, 1, max(2, F // (2 * s.m))) if var else (1, F // 2, F // 2)
        s.good, s.spare, s.spent = N, max(2, N // 64), 0
        s.free = set(range(N)); s.open = -1; s.left = 0; s.pages = [[] for _ in range(N)]; s.live = [0] * N
        s.refused, s.bad, s.names = set(), set(), []
        if spent: s.bad = set(range(s.spare)); s.free -= s.bad; s.spent = s.spare
        s.lev = [0]; s.undo = []; s.model = {}; s.pend = {}; s.journal = []; s.rest = []
        s.n = s.n0 = 0; s.ops = 0; s.cut_at = None; s.ck = None; s.faults = 0.0005
        s.stat = dict(full=0, ck=0, page=0, sweeps=0, cuts=0, moved=0, written=0, updates=0, victims=0, refused=0, names=0)
        s.slack = s.least = 1 << 30; s.wmost = 0
        s.root = Node(0, [], None, [], r.random()); s.E = 1; s.write([s.root]); s.checkpoint(); s.rebase()
    # --- the rule
    def pinned(s): return set().union(*s.names) if s.names else set()
    def blocks(s): return s.good - s.spare - (0 if s.by else 2) - len(s.pinned())
    def reserve(s, u, N):
        """(blocks in reserve, share s as numerator and denominator)"""
        d = s.q * s.B
        if s.S: return max(1, int(-(-(u + 1) * s.S // d))), 1, s.S
        e = max(1, isqrt(int((u + 1) * max(1, N) / d))); E = max((e, e + 1), key=lambda E: (d * E - u - 1) * (N - E) / E)
        return E, u + 1, d * E
    def apart(s, u, h): return -(-(u + s.p * h + 3) // s.B)
    def set_aside(s, on):
        """Pages go to blocks apart, or no longer."""
        if on != s.is_aside: (s.open, s.left), s.other, s.is_aside = s.other, (s.open, s.left), on
    def holds(s, w, u, h, N):
        W = (1 + s.p) * (h + 2)
        if s.by: return (w - u) * s.D <= (N - s.M * s.apart(u, h) - 1 - -(-W // s.B)) * s.B * (s.D - 1)
        if s.halves: return 2 * w + 2 * W + s.c <= N * s.B
        E, a, b = s.reserve(u, N); return a < b and w * b <= (N * s.B - E * s.B - W - s.c) * (b - a)
    def pays(s, x):
        """Nodes that cost a sweep a page of their own: alone, or the first of a storey."""
        return x.a < s.alone or (x.lv > 0 and x.lv % s.T == 0)
    def upper(s, g=0, gi=0, now=False):
        """The rule's u. ride: inner nodes go with the last node below; one pays that is alone, above one alone, or begins a storey."""
        u = sum((s.lev if now else s.d)[1:]) + gi; return min(u, (s.own if now else s.down) + g) if s.ride else u
    def fits(s, more):
        g, gi, h = growth(s.d, s.n0 + s.n + more, s.p, s.r0, s.r1)
        ok = s.holds(sum(s.d) + g, s.upper(g, gi), h, s.blocks())
        if ok: s.most = (sum(s.d) + g, s.upper(g, gi))
        return ok
    def rebase(s, n=0):
        """Counts anew. What growth() says of the same puts can rise by it: make_space must not depend on that."""
        s.d = s.lev[:s.root.lv + 1]; s.down = s.own; s.n0, s.n = sum(1 for v in s.pend.values() if v), n
        g, gi, h = growth(s.d, s.n0 + n, s.p, s.r0, s.r1); s.most = (sum(s.d) + g, s.upper(g, gi))
    def tick(s):
        s.ops += 1
        if s.cut_at and s.ops >= s.cut_at: raise Cut()
    def room(s): return len(s.free) * s.B + s.left
    def write(s, nodes):
        if s.ck: s.tick()
        while s.left == 0 or (s.spent < s.spare and s.r.random() < s.faults):
            if s.left: s.spent += 1; s.stat['refused'] += 1; s.refused.add(s.open); s.left = 0
            if not s.free: raise Broken('NO ROOM')
            s.open = s.r.choice(list(s.free)); s.free.discard(s.open); s.left = s.B; s.pages[s.open] = []
            if s.is_aside: s.aside.add(s.open)
        low = min(nodes, key=lambda x: x.lv); low.low = True; b = s.open
        s.pages[b].append(low); s.live[b] += 1; s.left -= 1; s.stat['written'] += 1
        for x in nodes:
            x.b = b; s.lev += [0] * (x.lv + 1 - len(s.lev)); s.lev[x.lv] += 1; s.own += s.pays(x)
        if s.ck: s.least = min(s.least, s.room())
    def kill(s, x):
        x.dead = True; s.undo.append(x); s.lev[x.lv] -= 1; s.own -= s.pays(x)
        if x.low: s.live[x.b] -= 1
    def checkpoint(s):
        if s.ck: s.tick()
        s.stat['ck'] += 1; before = s.room(); held = s.pinned()
        for b in range(s.good):
            if s.live[b] == 0 and b not in s.free and b not in s.bad and b not in held and not (b == s.open and s.left):
                if b == s.open: s.open = -1
                fails = s.spent < s.spare and s.r.random() < s.faults; s.spent += fails; s.pages[b] = []; s.aside.discard(b)
                (s.bad if fails or b in s.refused else s.free).add(b); s.refused.discard(b)
        s.record(); return s.room() - before
    def record(s):
        s.ck = (s.root, dict(s.pend), s.live[:], set(s.free), s.open, len(s.pages[s.open]) if s.open >= 0 else 0, list(s.names), s.lev[:], set(s.aside))
        s.journal = list(s.rest); s.undo = []
    def path(s, key, lv=0):
        x = s.root; p = [x]; at = []
        while x.lv > lv: i = max(0, bisect_right(x.k, key) - 1); x = x.c[i]; p.append(x); at.append(i)
        return p, at
    def write_path(s, path):
        """Lowest first; a page a storey, nodes that are alone in pages of their own, the root last."""
        i = 0
        while i < len(path):
            j = i + 1
            while j < len(path) and path[j].lv % s.T: j += 1
            pages = [[x] for x in path[i:j] if x.a < s.alone] + [[x for x in path[i:j] if x.a >= s.alone]]; i = j
            for p in sorted(filter(None, pages), key=lambda p: s.root in p): s.write(p)
    def split(s, x):
        """x and what it must shed: halves as even as entries allow; with varied lengths sometimes three leaves."""
        if sum(x.z) <= s.F: return [x]
        def cut(x):
            t = sum(x.z); i = min(range(1, len(x.z)), key=lambda i: abs(t - 2 * sum(x.z[:i]))); y = Node(x.lv, x.k[i:], x.c and x.c[i:], x.z[i:], s.r.random())
            x.k, x.c, x.z = x.k[:i], x.c and x.c[:i], x.z[:i]; return y
        y = cut(x); return [x, y] + ([cut(y)] if s.var and x.lv == 0 and len(y.k) > 1 and s.r.random() < .3 else [])
    def adds(s, key, size):
        """Inner nodes this update adds at most; -1 if no leaf is divided."""
        p = s.path(key)[0]; leaf = p[-1]; i = bisect_left(leaf.k, key)
        if not size or sum(leaf.z) - (leaf.z[i] if i < len(leaf.k) and leaf.k[i] == key else 0) + size <= s.F: return -1
        add = 0
        for x in p[-2::-1]:
            if sum(x.z) + s.p * s.m <= s.F: return add
            add += s.p
        return add + 2
    def apply(s, key, size):
        s.make_space((1 + s.p) * (s.root.lv + 3), s.adds(key, size)); s.parted = False
        p, at = s.path(key); leaf = p[-1]; i = bisect_left(leaf.k, key); has = i < len(leaf.k) and leaf.k[i] == key
        if size is None and not has: return
        for x in p: s.kill(x)
        x = leaf.copy()
        x.k[i:i + has] = [key] if size else []; x.z[i:i + has] = [size] if size else []
        parts = s.split(x) if x.k else []; up = []; j = len(p) - 2
        while True:
            main = None                                       # the part that goes with the path; an inner one holds the one below
            if parts: main = next(y for y in parts if up[-1] in y.c) if up else parts[bisect_right([y.k[0] for y in parts[1:]], key)]
            for y in parts: s.write([y]) if y is not main else up.append(y)
            if j < 0 and len(parts) <= 1: break
            if j < 0: x = Node(parts[0].lv + 1, [-1], [parts[0]], [s.sep()], s.r.random())
            else: x = p[j].copy(); i = at[j]
            if j >= 0 and parts: x.c[i] = parts[0]
            if j >= 0 and not parts: x.c.pop(i); i = 1 if i == 0 and len(x.k) > 1 else i; x.k.pop(i); x.z.pop(i)
            new = [x]; prev = parts[0] if parts else None
            for y in parts[1:]:                               # one separator at a time, divided between
                x = next(v for v in new if prev in v.c); t = x.c.index(prev) + 1
                x.c.insert(t, y); x.k.insert(t, y.k[0]); x.z.insert(t, s.sep()); prev = y
                t = new.index(x); new[t:t + 1] = s.split(x)
            parts = new if new[0].k else []; j -= 1
        s.root = up[-1] if up else Node(0, [], None, [], s.r.random())
        s.write_path(up or [s.root]); s.stat['updates'] += 1
        w = sum(s.lev); s.wmost = max(s.wmost, w)
        if w > s.most[0] or s.upper(now=True) > s.most[1]: raise Broken('growth: %d %d over %s' % (w, s.upper(now=True), s.most))
    def sep(s): return s.r.choice((1, s.m, s.r.randint(1, s.m)))
    def move(s, x):
        p, at = s.path(x.k[0], x.lv) if x.k else ([s.root], []); new = [x.copy()]
        for y in p: s.kill(y)
        for y, i in zip(p[-2::-1], at[::-1]): y = y.copy(); y.c[i] = new[-1]; new.append(y)
        s.root = new[-1]; s.write_path(new)
    def group(s, x, marked, out):
        """The pages of a sweep, in key order, each marked node once. Answers the page in which the parent may ride."""
        ride = None
        for v in x.c or ():
            if id(v) in marked: ride = s.group(v, marked, out)
        if not s.ride or x.lv % s.T == 0: ride = None
        if ride is not None and x.a >= s.alone: ride.append(x); return ride
        own = [x]; out.append(own); return ride if x.a < s.alone else own
    def pages_of(s, victims):
        m = {}; out = []
        for x in (x for b in victims for x in s.pages[b] if not x.dead):
            if id(x) not in m: m.update((id(y), y) for y in (s.path(x.k[0], x.lv)[0] if x.k else [s.root]))
        if m: s.group(s.root, m, out)
        return out
    def sweep(s, pages):
        if len(pages) > s.room(): raise Broken('sweep does not fit')
        s.stat['sweeps'] += 1; s.stat['moved'] += len(pages); new = {}
        for x in sorted((x for p in pages for x in p), key=lambda x: x.lv):
            y = new[id(x)] = x.copy(); s.kill(x)
            if x.lv: y.c = [new.get(id(v), v) for v in x.c]
        root = new.get(id(s.root), s.root)
        for p in sorted(pages, key=lambda p: s.root in p): s.write([new[id(x)] for x in p])
        s.root = root; s.checkpoint()
    def ready(s, R, w):
        """Physical rule. whole: R pages and the spare are there in whole free blocks even
        after w pages, for a cut takes the rest of the open block."""
        return len(s.free) >= -(-R // s.B) + -(-max(0, w - s.left) // s.B) + s.spare - s.spent if s.whole else s.room() >= R + w
    def fit(s):
        """Pages a collection may write: the spare blocks stay for programs refused within it."""
        return s.room() - (s.B * (s.spare - s.spent) if s.whole else 0)
    def make_space(s, w, add):
        """Physical rule: with the inner nodes there ARE and those this update adds, never with a bound counted anew."""
        if s.by:
            for _ in range(2000):
                h = s.root.lv + 2; U = s.apart(sum(s.lev[1:]), h); R = s.M * U + 1 + -(-w // s.B)
                ready = lambda: len(s.free) + min(U, len(s.aside - s.pinned())) >= R + s.spare - s.spent
                if ready() or s.checkpoint() and ready(): return
                s.collect_apart(R)
            raise Broken('no progress in 2000')
        u = min(s.upper(add + s.p, add, True) if add >= 0 else s.upper(now=True), s.most[1])
        s.E = s.reserve(u, s.blocks())[0]; R = min(sum(s.lev) + max(0, add) + s.p, s.most[0]) if s.halves else s.E * s.B
        for _ in range(2000):
            if s.ready(R, w) or s.checkpoint() and s.ready(R, w): return
            s.collect()
        raise Broken('no progress in 2000')
    def sweep_apart(s, victims):
        """All inner nodes to blocks apart, and what lives in the victims; children first, the root last."""
        s.stat['apart'] = s.stat.get('apart', 0) + 1; ids = {id(x) for b in victims for x in s.pages[b] if not x.dead and not x.lv}
        def rec(x):
            y = x.copy()
            if x.lv: y.c = [rec(v) if v.lv or id(v) in ids else v for v in x.c]
            s.kill(x); s.set_aside(x.lv > 0); s.write([y]); s.stat['moved'] += 1; return y
        s.other = (-1, 0); s.root = rec(s.root); s.set_aside(False); s.other = (-1, 0); s.parted = True; s.checkpoint()
    def collect_apart(s, R):
        """A sweep of the usual kind or one with inner nodes apart, whichever moves fewest pages a page gained."""
        used = s.used(); free = len(s.free) - (s.spare - s.spent); inner = sum(s.lev[1:]); U = -(-inner // s.B); lives = 0; best = usual = None
        more = 0 if s.parted else max(0, U - len(s.aside - s.pinned())) * s.B
        for k, b in enumerate(used[:max(8, R)], 1):
            lives += s.live[b]; gain = k * s.B - lives - more
            if gain > 0 and lives <= (free - U) * s.B and (best is None or (lives + inner) * best[1] < best[0] * gain): best = (lives + inner, gain, k)
            if not (s.parted and s.sticky):
                out = s.pages_of(used[:k]); gain = k * s.B - len(out) - 1
                if gain > 0 and len(out) + 1 <= s.fit() and (usual is None or len(out) * usual[1] < usual[0] * gain): usual = (len(out), gain, k)
        if usual and (best is None or usual[0] * best[1] <= best[0] * usual[1]): s.parted = False; return s.sweep(s.pages_of(used[:usual[2]]))
        if free < U or s.root.lv == 0: raise Broken('no room apart: free=%d U=%d A=%d R=%d u=%d names=%d parted=%d victims=%d apart sweeps=%d h=%d' % (free, U, len(s.aside - s.pinned()), R, inner, len(s.names), s.parted, len(used), s.stat.get('apart', 0), s.root.lv))
        if best is None and s.parted: raise Broken('no progress: free=%d U=%d leaves=%d' % (free, U, s.lev[0]))
        s.sweep_apart(used[:best[2]] if best else [])
    def used(s):
        out = s.aside | s.free | s.bad | s.refused | s.pinned() | {s.open}
        return sorted((b for b in range(s.good) if b not in out), key=lambda b: s.live[b])
    def path_pages(s, x):
        st = {}
        for y in s.path(x.k[0], x.lv)[0] if x.k else [s.root]: st.setdefault(y.lv // s.T, []).append(y.a < s.alone)
        return sum(sum(v) + (not all(v)) for v in st.values())
    def by_page(s, block):
        before = s.stat['written']
        while any(not x.dead for x in s.pages[block]): s.move(next(x for x in s.pages[block] if not x.dead))
        s.stat['page'] += 1; s.stat['moved'] += s.stat['written'] - before; s.checkpoint()
    def collect(s):
        """One victim page by page, or a sweep of the k emptiest (1, 2, 4 .. and the most that fit). Only what fits and gains is
        begun, and of that what moves fewest pages a page gained."""
        used = s.used(); before = s.room(); fit = s.fit(); best = None; did = 0; k = 1; last = False
        if s.halves: return s.sweep(s.pages_of(used))
        if not used: raise Broken('no progress: nothing used')
        pages = sum(s.path_pages(x) for x in s.pages[used[0]] if not x.dead)
        if s.blind and pages <= fit:
            s.by_page(used[0])
            if s.room() > before: return
            used = s.used(); fit = s.fit()
        elif pages <= fit and pages < s.B: best = (pages / (s.B - pages), 0, None)
        while not last:
            k = min(k, len(used)); out = s.pages_of(used[:k])
            if len(out) + 1 > fit:
                hi = k; k = did
                while hi - k > 1: t = (k + hi) // 2; k, hi = (t, hi) if len(s.pages_of(used[:t])) + 1 <= fit else (k, t)
                if k == did: break
                out = s.pages_of(used[:k]); last = True
            gain = k * s.B - len(out); did = k; last = last or k == len(used)
            if gain > 0 and (best is None or len(out) / gain < best[0]): best = (len(out) / gain, k, out)
            k *= 2
        if best is None: raise Broken('no progress: k=%d pages=%d free=%d E=%d u=%d' % (k, len(out), s.room(), s.E, s.upper(now=True)))
        if best[2] is None: return s.by_page(used[0])
        cost = len(best[2]); s.slack = min(s.slack, fit - cost - 1); s.stat['victims'] = max(s.stat['victims'], best[1])
        if cost > sum(s.live[b] for b in used[:best[1]]) + s.upper(now=True): raise Broken('a sweep costs more than live + u')
        s.sweep(best[2])
    def settle_one(s): key = s.r.choice(list(s.pend)); s.apply(key, s.pend[key]); del s.pend[key]
    def drain(s):
        while s.pend: s.settle_one()
    def update(s, batch):
        puts = sum(1 for _, z in batch if z); direct = False
        if puts and not s.fits(puts):
            if not (len(batch) == 1 and not s.pend and s.r.random() < .9 and s.adds(*batch[0]) < 0):
                s.rest = []; s.checkpoint(); s.rebase()
                if not s.fits(puts): s.drain(); s.checkpoint(); s.rebase()
            if not s.fits(puts):
                if len(batch) > 1 or s.adds(*batch[0]) >= 0: s.stat['full'] += 1; return False
                s.drain(); direct = True
        s.n += 0 if direct else puts; s.journal.append((direct, list(batch)))
        for k, z in batch: s.model.__setitem__(k, z) if z else s.model.pop(k, None)
        s.run(direct, batch, []); return True
    def run(s, direct, batch, after):
        if direct:                                           # all that waits goes first; the one that adds nothing follows
            s.rest = [(direct, batch)] + after; s.drain(); s.apply(*batch[0]); s.rest = after; return
        for i, (k, z) in enumerate(batch):
            s.rest = [(False, batch[i:])] + after
            if s.buf == 0: s.drain(); s.apply(k, z); continue
            while len(s.pend) >= s.buf and k not in s.pend: s.settle_one()
            s.pend[k] = z
        s.rest = after
    def name(s):
        s.rest = []; s.checkpoint(); s.rebase()
        s.names.append({b for b in range(s.good) if s.live[b]})
        if not s.fits(0): s.names.pop(); return
        if s.open in s.names[-1]: s.left = 0; s.open = -1
        s.record(); s.rebase(); s.stat['names'] += 1
    def forget(s):
        s.rest = []; s.checkpoint(); s.names.pop(s.r.randrange(len(s.names))); s.checkpoint(); s.rebase()
    def reopen(s, cut):
        s.stat['cuts'] += 1; s.cut_at = None
        s.root, pend, live, free, opened, n, names, lev, aside = s.ck; s.aside = set(aside) if s.known else set(); s.is_aside, s.other, s.parted = False, (-1, 0), False
        for x in s.undo: x.dead = False
        s.undo = []; s.pend, s.live, s.names, s.lev = dict(pend), live[:], list(names), lev[:]
        for b in free: s.pages[b] = []
        s.bad |= s.refused & free; s.refused -= free; s.free = free - s.bad
        if opened >= 0: del s.pages[opened][n:]
        s.count_own(); s.open, s.left = -1, 0; s.buf = s.r.choice([0, 1, 3, 17, 200]); journal = s.journal
        s.rebase(sum(1 for d, b in journal if not d for _, z in b if z))
        s.rest = list(journal); s.cut_at = None if cut is None else s.ops + cut
        while len(s.pend) > s.buf: s.settle_one()
        for i, (d, b) in enumerate(journal): s.run(d, b, journal[i + 1:])
        s.rest = []; s.checkpoint(); s.rebase()
    def nodes(s):
        st = [s.root]
        while st: x = st.pop(); st.extend(x.c or ()); yield x
    def count_own(s): s.own = sum(s.pays(x) for x in s.nodes())
    def shrink(s, alone):
        """A smaller share or a raise: nodes become alone. Taken only if the inequality holds with them."""
        old = s.alone; s.alone = alone; s.count_own(); s.rebase()
        if s.ride and old < alone and not s.fits(0): s.alone = old; s.count_own(); s.rebase()
    def verify(s):
        got = {}; low = [0] * s.good; lev = [0] * len(s.lev)
        for x in s.nodes():
            lev[x.lv] += 1; assert not x.dead
            if x.low: low[x.b] += 1
            if not x.lv: got.update(zip(x.k, x.z))
        for k, z in s.pend.items(): got.__setitem__(k, z) if z else got.pop(k, None)
        assert lev == s.lev and low == s.live and got == s.model, 'content or counts differ'
    def bulk(s, fan, keys, share=1.0):
        """A tree as full as the rule allows, leaves scattered over the blocks, as after a long time of random updates."""
        r = s.r
        def build(n):
            row = [Node(0, [(i << 24) + (j << 10) for j in range(keys)], None, [1] * keys, r.random()) for i in range(n)]; rows = [row]
            while len(row) > 1:
                cnt = -(-len(row) // fan); row = [row[len(row) * i // cnt:len(row) * (i + 1) // cnt] for i in range(cnt)]
                row = [Node(g[0].lv + 1, [x.k[0] for x in g], g, [1] * len(g), r.random()) for g in row]; rows.append(row)
            w = sum(map(len, rows)); u = sum(s.pays(x) for row in rows for x in row)
            return rows, s.holds(w, min(u, w - n) if s.ride else w - n, len(rows), s.blocks())
        lo, hi = 1, s.good * s.B; s.kill(s.root)
        while hi - lo > 1:
            n = (lo + hi) // 2; lo, hi = (n, hi) if build(n)[1] else (lo, n)
        n = max(1, int(lo * share)); rows, ok = build(n)
        while not ok and n > 1: n -= 1; rows, ok = build(n)
        for x in rows[0]: s.model.update(zip(x.k, x.z))
        for row in rows:
            s.set_aside(s.by and row[0].lv > 0)
            for x in r.sample(row, len(row)): s.write([x])
        s.set_aside(False); s.other = (-1, 0); s.root = row[0]; s.checkpoint(); s.rebase(); s.wmost = sum(s.lev); s.least = s.slack = 1 << 30
    def leaf(s, b=None):
        for _ in range(200):
            t = s.r.randrange(s.good) if b is None else b
            x = s.r.choice(s.pages[t]) if s.live[t] else s.root
            if not x.dead and x.lv == 0 and x.k: return x
        return s.path(s.r.choice(list(s.model) or [0]))[0][-1]
    def beside_full(s):
        """A key into a full leaf below full nodes."""
        x = s.root; lo, hi = 0, 1 << 44
        while x.lv:
            full = max(sum(c.z) for c in x.c); i = s.r.choice([i for i, c in enumerate(x.c) if sum(c.z) == full])
            lo = max(lo, x.k[i]); hi = x.k[i + 1] if i + 1 < len(x.k) else hi; x = x.c[i]
        return s.r.randrange(lo, max(lo + 1, hi))
    def fullest(s):
        """A leaf in the block with the most live pages: leaves the garbage of all blocks alike."""
        out = s.pinned() | {s.open}; most = max([n for b, n in enumerate(s.live) if b not in out] or [0])
        return s.leaf(s.r.choice([b for b, n in enumerate(s.live) if n == most and b not in out] or [0]))

PHASES = ('fill', 'fill', 'thin', 'mix', 'sparse', 'uniform', 'uniform', 'fullest', 'fullest', 'one', 'alternate', 'ring')
def batch(s, r, phase, state):
    """The next batch of an adversary in this phase."""
    out = []; size = lambda: r.choice((1, s.m, r.randint(1, s.m)))
    for _ in range(r.choice((1, 1, 1, 2, 10, 40)) if phase in ('fill', 'thin', 'mix') else 1):
        if phase == 'fill' or (phase == 'mix' and r.random() < .5) or not s.model:
            out.append((s.beside_full() if r.random() < .8 else r.randrange(1 << 40), size())); continue
        if phase == 'sparse': out += [(k, None) for k in s.leaf().k[1:]]; continue
        if phase == 'alternate':
            if 'k' in state: out.append((state.pop('k') + r.randrange(2), size()))
            else: state['k'] = r.choice(s.leaf().k or [0]); out.append((state['k'], None))
            continue
        if phase == 'one': state['b'] = (state.get('b', 0) + 1) % s.good; x = s.leaf(state['b'])   # one key a block
        elif phase == 'fullest': x = s.fullest()
        elif phase == 'ring':                                                    # far apart in key order
            state['at'] = (state.get('at', 0) + (7 << 24)) % (1 << 40); x = s.path(state['at'])[0][-1]
        else: x = s.leaf()
        if not x.k: out.append((r.randrange(1 << 40), size())); continue
        k = r.choice(x.k)
        out.append((k, None if phase == 'thin' or (phase == 'mix' and r.random() < .7) else s.model.get(k, 1) if r.random() < .8 else size()))
    return [(max(0, k), z) for k, z in out]

def cut_and_reopen(s, r):
    try: s.reopen(r.randrange(1, 80) if r.random() < .5 else None)
    except Cut: cut_and_reopen(s, r)

def trial(seed, steps, cuts=.02, **force):
    r = random.Random(seed)
    o = dict(N=r.choice((40, 100)), B=r.choice((8, 16)), F=r.choice((4, 10, 30, 60)), T=r.choice((1, 2, 3, 99)), S=r.choice((8, 12, 16)), q=1,
             var=r.random() < .5, halves=r.random() < .15, buf=r.choice((0, 1, 8, 60, 300)), alone=r.choice((0, .3, 1)), spent=r.random() < .5)
    o.update(force); s = Sim(r, **o); names = r.random() < .3
    if not s.fits(1): return dict(seed=seed, res='too small', **o)
    res = 'ok'; phase = 'fill'; state = {}
    try:
        if r.random() < .7: s.bulk(max(2, int(s.F * r.choice((.5, .7, 1)))), r.choice((1, 2, 2)), r.choice((1, 1, .9)))
        for step in range(steps):
            if r.random() < .004: phase = r.choice(PHASES)
            if r.random() < .002: s.shrink(r.choice((0, .3, 1, 1)))
            if s.cut_at is None and r.random() < cuts: s.cut_at = s.ops + r.randrange(1, 200)
            try:
                if names and r.random() < .01: s.forget() if s.names and (len(s.names) > 2 or r.random() < .5) else s.name()
                s.update(batch(s, r, phase, state) or [(0, None)])
            except Cut: cut_and_reopen(s, r)
            if step % 500 == 499: s.verify()
        s.verify()
    except Broken as e: res = str(e)
    return dict(seed=seed, res=res, share=round(s.wmost / (s.good * s.B), 3), E=s.E, u=sum(s.lev[1:]), w=sum(s.lev), slack=s.slack, least=s.least,
                per=round(s.stat['moved'] / max(1, s.stat['updates']), 2), phase=phase, **{**o, **s.stat})

if __name__ == '__main__':
    first, last, steps = map(int, sys.argv[1:4])
    force = {k: (float(v) if k in ('alone', 'q') else int(v)) for k, v in (a.split('=') for a in sys.argv[4:])}
    bad = 0
    for seed in range(first, last):
        t = trial(seed, steps, **force); bad += t['res'] not in ('ok', 'too small'); print(t, flush=True)
    print('broken:', bad, 'of', last - first)
