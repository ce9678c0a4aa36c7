// A discrete-event simulation of a rollout: the engine's own picker, choker, super-seeding and origin rules decide, and a model of
// links carries the pieces. It is one file because every step touches a node, its links and its neighbours at once.
//
// The model: every node has one uplink and one downlink of the same rate. An uplink sends parts of pieces to its requesters
// round-robin; a downlink receives in order of arrival. A piece is verified shortly after its last part, and announced then. Messages of
// a busy node (announcements, requests) wait behind the bytes in its sockets. Headers take their share of a link.
// Not modelled: packets and loss, processors, peer discovery (nodes know random earlier ones), crashes.

import { VirtualClock } from '@svc/testkit/virtual-clock'
import { Bitfield } from '../../src/bitfield.ts'
import { FAR_AT_ONCE, FarSources, nodeHash } from '../../src/download/far-sources.ts'
import { PiecePicker } from '../../src/download/picker.ts'
import { isFar } from '../../src/torrent/zone.ts'
import { chooseUnchoked } from '../../src/upload/choker.ts'
import { SuperSeed } from '../../src/upload/super-seed.ts'
import { seeded } from '../seeded.ts'

export interface SimulationOptions {
  readonly receivers: number
  readonly fileBytes: number
  readonly pieces: number
  /** Rate of every link, in each direction. */
  readonly bytesPerSecond: number
  /** Connections that each node opens. */
  readonly dials: number
  /** Milliseconds between arrivals of receivers; 0: all at once. */
  readonly staggerMs?: number
  readonly zones?: number
  /** Rate of a bucket that is the only origin, in bytes per second; absent: the origin is a seed. */
  readonly bucket?: number
  /** Piece size for the engine's quotas and timeouts, if the simulated pieces are larger than real ones. */
  readonly enginePieceBytes?: number
  /** False disables super-seeding. Default true. */
  readonly firstSeed?: boolean
  /** Seed of the random numbers; default 1. */
  readonly seed?: number
}

export interface SimulationResult {
  /** Download time of each receiver, from its own start. */
  readonly seconds: readonly number[]
  /** Bytes uploaded by the origin, in multiples of the file size. */
  readonly origin: number
  /** Bytes into each zone but the first, in multiples of the file size. */
  readonly crossing: readonly number[]
  readonly connections: { readonly mean: number; readonly max: number }
}

interface Transfer {
  readonly to: Node
  readonly piece: number
  partsLeft: number
  arrived: number
  readonly askedAt: number
}

interface Link {
  readonly peer: Node
  readonly far: boolean
  /** Pieces requested from the peer and not yet received. */
  outstanding: number
  unchoked: boolean
  turnSince: number
  sentThisTurn: number
}

const PARTS = 4
const VERIFY_MS = 20
/** From the begin of a fetch to its first connections: the tracker is asked, handshakes and the metadata are exchanged. */
const START_MS = 1_500
/** What a message of a node waits that is sending: less than `QUEUE_MS` of the engine's requests, and the queue of a switch. */
const NEWS_MS = 250
/** Ethernet, IP, TCP and the protocol itself, as a share of the bytes of pieces. */
const HEADERS = 0.035
const ROUND_MS = 10_000
const TICK_MS = 1_000
/** The engine's upload slots, and bytes per upload turn. */
const SLOTS = 32
const QUOTA_BYTES = 64 * 1_048_576
/** Limit of pieces that are reserved for one peer. */
const PIPELINE = 1
/** Limit of outstanding pieces per node. The engine may hold fewer, but then splits them among sources: as many requests are in flight. */
const MAX_IN_FLIGHT = 32

class Node {
  readonly id: number
  readonly zone: string | undefined
  readonly bits: Bitfield
  /** What it has announced. */
  readonly told: Bitfield
  readonly picker: PiecePicker
  readonly links = new Map<number, Link>()
  readonly queue: Transfer[] = []
  readonly farSources: FarSources
  superSeed: SuperSeed | undefined
  /** By peer: the pieces that a super-seed has revealed to it. */
  readonly revealed = new Map<number, Bitfield>()
  inFlight = 0
  sending = false
  downFreeAt = 0
  /** When it was connected. */
  startedAt = 0
  /** When its user asked for it. */
  begunAt = 0
  doneAt: number | undefined
  webseedBusy = false
  cursor: number
  readonly hash: number

  constructor(
    id: number,
    pieces: number,
    zone: string | undefined,
    random: () => number,
    farSources: (hash: number) => FarSources
  ) {
    this.id = id
    this.zone = zone
    this.bits = new Bitfield(pieces)
    this.told = new Bitfield(pieces)
    this.picker = new PiecePicker(pieces, random)
    this.hash = nodeHash(Uint8Array.of(id >> 16, id >> 8, id, 1, 2, 3))
    this.cursor = Math.floor(random() * pieces)
    this.farSources = farSources(this.hash)
  }
}

/** Simulates one rollout. @throws Error if it stalls before every receiver is complete */
export function simulate(options: SimulationOptions): SimulationResult {
  const { receivers, fileBytes, pieces, bytesPerSecond, dials, staggerMs = 0, zones = 1, bucket } = options
  const random = seeded(options.seed ?? 1)
  const clock = new VirtualClock()
  const pieceBytes = fileBytes / pieces
  const engineBytes = options.enginePieceBytes ?? pieceBytes
  const partMs = ((pieceBytes / PARTS) * (1 + HEADERS) * 1000) / bytesPerSecond
  const newsMs = (node: Node): number => (node.sending ? NEWS_MS : 1)
  const zoneOf = (id: number): string | undefined =>
    zones === 1 ? undefined : `zone-${id === 0 ? 0 : Math.floor(((id - 1) * zones) / receivers)}`
  const nodes: Node[] = []
  let originBytes = 0
  let unfinished = receivers
  const crossing = new Map<string, number>()

  const link = (a: Node, b: Node): void => {
    if (a === b || a.links.has(b.id)) return
    const far = a.zone !== b.zone && isFar({ trusted: true, zone: b.zone }, a.zone)
    const one = (peer: Node): Link => ({
      peer,
      far,
      outstanding: 0,
      unchoked: false,
      turnSince: clock.monotonic(),
      sentThisTurn: 0
    })
    a.links.set(b.id, one(b))
    b.links.set(a.id, one(a))
    for (const [node, other] of [
      [a, b],
      [b, a]
    ] as const) {
      if (other.superSeed === undefined) {
        node.picker.addPeer(other.told, 1, !far)
        if (!far && other.doneAt === undefined) node.farSources.joined(other.id, other.hash)
      } else {
        other.revealed.set(node.id, new Bitfield(pieces))
        other.superSeed.joined(node.id, node.bits, clock.monotonic())
      }
    }
  }

  /** The pieces of `owner` as far as `viewer` knows. */
  const visible = (owner: Node, viewer: Node): Bitfield => owner.revealed.get(viewer.id) ?? owner.told

  const offer = (node: Node): void => {
    for (const [id, piece] of node.superSeed?.offers(clock.monotonic(), !node.sending) ?? []) {
      const peer = nodes[id]!
      node.revealed.get(id)!.set(piece)
      peer.picker.addHave(piece, 1, !peer.links.get(node.id)!.far)
      fill(peer, node)
    }
  }

  const wants = (node: Node): boolean => node.doneAt === undefined && node.startedAt <= clock.monotonic()

  const choke = (node: Node): void => {
    const candidates = [...node.links].map(([id, each]) => ({
      id,
      peerInterested: wants(each.peer) && node.bits.count > 0,
      amChoking: !each.unchoked,
      trusted: true,
      down: { bytesPerSecond: 0 },
      sentThisTurn: each.sentThisTurn,
      turnSince: each.turnSince,
      uploadActiveAt: clock.monotonic()
    }))
    const fetching = node.doneAt === undefined
    const chosen = chooseUnchoked(candidates, {
      nowMs: clock.monotonic(),
      slots: SLOTS,
      fetching,
      quotaBytes: QUOTA_BYTES * Math.max(1, pieceBytes / engineBytes),
      optimistic: undefined
    })
    for (const [id, each] of node.links) {
      const unchoke = chosen.has(id)
      if (unchoke === each.unchoked) continue
      each.unchoked = unchoke
      each.turnSince = clock.monotonic()
      each.sentThisTurn = 0
      if (unchoke) fill(each.peer, node)
    }
  }

  const farAsked = (node: Node): number => {
    let count = 0
    for (const each of node.links.values()) if (each.far && each.outstanding > 0) count += 1
    return count
  }

  /** Requests as many pieces of `source` as the limits allow. */
  function fill(node: Node, source: Node): void {
    if (!wants(node)) return
    const toSource = node.links.get(source.id)!
    if (!source.links.get(node.id)!.unchoked) return
    const unsharedOnly = toSource.far && !node.farSources.isStarving(clock.monotonic())
    if (unsharedOnly && toSource.outstanding > 0) return
    const sparing = unsharedOnly ? node.farSources.mine(clock.monotonic()) : undefined
    while (toSource.outstanding < (unsharedOnly ? 1 : PIPELINE) && node.inFlight < MAX_IN_FLIGHT) {
      if (unsharedOnly && toSource.outstanding === 0 && farAsked(node) >= FAR_AT_ONCE) return
      const piece = node.picker.pick(visible(source, node), sparing)
      if (piece === undefined) return
      if (unsharedOnly) node.farSources.took(piece, clock.monotonic())
      node.picker.close(piece)
      node.inFlight += 1
      toSource.outstanding += 1
      const askedAt = clock.monotonic()
      clock.at(askedAt + newsMs(node), () => {
        source.queue.push({ to: node, piece, partsLeft: PARTS, arrived: 0, askedAt })
        if (!source.sending) send(source)
      })
    }
  }

  const fillAll = (node: Node): void => {
    for (const each of node.links.values()) if (each.outstanding < PIPELINE) fill(node, each.peer)
  }

  /** Sends the next part in the uplink's queue. */
  function send(source: Node): void {
    const transfer = source.queue.shift()
    source.sending = transfer !== undefined
    if (transfer === undefined) return
    const { to } = transfer
    transfer.partsLeft -= 1
    source.links.get(to.id)!.sentThisTurn += pieceBytes / PARTS
    if (bucket === undefined && source.id === 0) originBytes += pieceBytes / PARTS
    if (source.zone !== to.zone) crossing.set(to.zone!, (crossing.get(to.zone!) ?? 0) + pieceBytes / PARTS)
    source.superSeed?.sent(to.id, transfer.piece, engineBytes / PARTS, clock.monotonic())
    const leftAt = clock.monotonic() + partMs
    clock.at(leftAt, () => {
      if (transfer.partsLeft > 0) {
        // round-robin between peers, but one piece at a time for each of them
        const same = source.queue.findIndex((other) => other.to === to)
        if (same < 0) source.queue.push(transfer)
        else source.queue.splice(same, 0, transfer)
      }
      // cut-through: a part arrives while it is being sent, unless parts of other sources keep the downlink busy
      to.downFreeAt = Math.max(clock.monotonic(), to.downFreeAt + partMs)
      clock.at(to.downFreeAt, () => arrived(transfer, source))
      send(source)
    })
  }

  function arrived(transfer: Transfer, source: Node | undefined): void {
    const { to, piece } = transfer
    transfer.arrived += 1
    if (source !== undefined && !to.links.get(source.id)!.far)
      to.farSources.nearGave(clock.monotonic(), engineBytes / PARTS)
    if (transfer.arrived < PARTS) return
    if (source === undefined || to.links.get(source.id)!.far)
      to.farSources.brought(clock.monotonic() - transfer.askedAt)
    if (source !== undefined) to.links.get(source.id)!.outstanding -= 1
    const wasFull = to.inFlight >= MAX_IN_FLIGHT
    to.inFlight -= 1
    clock.at(clock.monotonic() + VERIFY_MS, () => verified(to, piece))
    if (wasFull) fillAll(to)
    else if (source !== undefined) fill(to, source)
  }

  function verified(node: Node, piece: number): void {
    if (!node.bits.set(piece)) return
    if (node.bits.complete) {
      node.doneAt = clock.monotonic()
      unfinished -= 1
      for (const each of node.links.values()) each.peer.farSources.gone(node.id)
    }
    clock.at(clock.monotonic() + newsMs(node), () => say(node, piece))
    // a free slot is given at once, as the engine does
    if (node.bits.count === 1) choke(node)
    takeFromBucket(node)
  }

  /** Neighbours hear that the node has the piece. */
  function say(node: Node, piece: number): void {
    node.told.set(piece)
    for (const each of node.links.values()) {
      const { peer } = each
      if (peer.superSeed === undefined) {
        const near = !peer.links.get(node.id)!.far
        if (near && peer.picker.isUnshared(piece)) peer.farSources.delivered(node.id)
        if (peer.doneAt === undefined) peer.picker.addHave(piece, 1, near)
      } else {
        peer.superSeed.got(node.id, piece, clock.monotonic())
        if (node.told.complete) peer.superSeed.gone(node.id)
        offer(peer)
      }
      if (peer.inFlight < MAX_IN_FLIGHT && peer.picker.isOpen(piece)) fill(peer, node)
    }
  }

  const noteNear = (node: Node): void => {
    const { openCount } = node.picker
    if (openCount > 0 && openCount === node.picker.openUnshared) node.farSources.nearHasNothing(clock.monotonic())
  }

  let bucketFreeAt = 0
  function takeFromBucket(node: Node): void {
    if (bucket === undefined || node.webseedBusy || !wants(node) || node.inFlight >= MAX_IN_FLIGHT) return
    noteNear(node)
    const allowance = node.farSources.allowance(clock.monotonic(), node.links.size === 0)
    if (allowance === undefined) return
    const { picker } = node
    const { cursor: from } = node
    const { sparing } = allowance
    const found =
      picker.pickRun(0, pieces, 1, { from, sparing: sparing ?? (() => true) }) ??
      (sparing ? undefined : picker.pickRun(0, pieces, 1, { from }))
    if (found === undefined) return
    const piece = found.first
    if (sparing) node.farSources.took(piece, clock.monotonic())
    node.cursor = (piece + 1) % pieces
    picker.close(piece)
    node.webseedBusy = true
    node.inFlight += 1
    originBytes += pieceBytes
    bucketFreeAt = Math.max(clock.monotonic(), bucketFreeAt) + (pieceBytes * (1 + HEADERS) * 1000) / bucket
    const transfer: Transfer = { to: node, piece, partsLeft: 0, arrived: 0, askedAt: clock.monotonic() }
    node.downFreeAt = Math.max(bucketFreeAt, node.downFreeAt + partMs * PARTS)
    clock.at(node.downFreeAt, () => {
      transfer.arrived = PARTS - 1
      arrived(transfer, undefined)
      node.webseedBusy = false
      takeFromBucket(node)
    })
  }

  const tick = (node: Node): void => {
    if (unfinished === 0) return
    offer(node)
    if (wants(node)) {
      noteNear(node)
      fillAll(node)
      takeFromBucket(node)
    }
    clock.at(clock.monotonic() + TICK_MS, () => tick(node))
  }

  const round = (node: Node): void => {
    if (unfinished === 0) return
    choke(node)
    clock.at(clock.monotonic() + ROUND_MS, () => round(node))
  }

  const farSourcesOf = (hash: number): FarSources => new FarSources(hash, clock.monotonic(), random(), engineBytes)

  const start = (): void => {
    // ids are indexes of `nodes`
    const zone = zoneOf(bucket === undefined ? nodes.length : nodes.length + 1)
    const node = new Node(nodes.length, pieces, zone, random, farSourcesOf)
    node.startedAt = clock.monotonic()
    node.begunAt = clock.monotonic() - START_MS
    for (let piece = 0; piece < pieces; piece += 1) node.picker.reopen(piece)
    if (bucket === undefined && nodes[0]!.links.size < 200) link(node, nodes[0]!)
    // dial random earlier nodes, at most a quarter of them in other zones
    const before = nodes.length - (bucket === undefined ? 1 : 0)
    const firstId = bucket === undefined ? 1 : 0
    let near = 0
    let far = 0
    for (let attempt = 0; attempt < dials * 6 && near + far < Math.min(dials, before); attempt += 1) {
      const other = nodes[firstId + Math.floor(random() * before)]
      if (other === undefined || other === node || node.links.has(other.id)) continue
      if (other.zone === node.zone) near += 1
      else if (far < dials / 4) far += 1
      else continue
      link(node, other)
    }
    nodes.push(node)
    for (const each of node.links.values()) choke(each.peer)
    for (const each of node.links.values()) if (each.peer.superSeed !== undefined) offer(each.peer)
    tick(node)
    round(node)
  }

  if (bucket === undefined) {
    const first = new Node(0, pieces, zoneOf(0), random, farSourcesOf)
    first.bits.setAll()
    first.told.setAll()
    first.doneAt = 0
    if (options.firstSeed !== false)
      first.superSeed = new SuperSeed({ pieceCount: pieces, pieceBytes: engineBytes, random })
    nodes.push(first)
    tick(first)
    round(first)
  }
  const firstId = nodes.length
  for (let index = 0; index < receivers; index += 1) {
    // spread over half a second: even simultaneous starts are never exact
    clock.at(index * staggerMs + random() * 500, start)
  }
  while (unfinished > 0)
    if (!clock.step()) throw new Error(`the rollout has stalled with ${unfinished} receivers incomplete`)
  const degrees = nodes.map((node) => node.links.size)
  return {
    seconds: nodes.filter(({ id }) => id >= firstId).map((node) => (node.doneAt! - node.begunAt) / 1000),
    origin: originBytes / fileBytes,
    crossing: [...crossing]
      .filter(([zone]) => zone !== 'zone-0')
      .sort()
      .map(([, bytes]) => bytes / fileBytes),
    connections: {
      mean: degrees.reduce((sum, degree) => sum + degree, 0) / degrees.length,
      max: degrees.reduce((max, degree) => Math.max(max, degree), 0)
    }
  }
}
