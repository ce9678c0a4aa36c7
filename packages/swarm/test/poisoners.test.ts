import { afterEach, beforeEach, expect, test } from 'vitest'
import { createFileStorage, type SwarmTorrent } from '../src/index.ts'
import { formatBlockRef, formatSimple, MESSAGE } from '../src/wire/messages.ts'
import { Engines, expectFiles } from './engines.ts'
import { listenRaw, type RawListener, type RawPeer, type Script } from './raw-peer.ts'
import type { Fixture } from './torrent-fixture.ts'

// Pieces whose blocks came from several peers, one of whom lies and knows how it would be found out.

const PIECE = 262_144
const engines = new Engines()
let fixture: Fixture
beforeEach(async () => {
  fixture = await engines.torrent({ a: PIECE }, PIECE)
})
afterEach(() => engines.close())

async function peer(script: Script): Promise<RawListener> {
  const listener = await listenRaw(fixture, script)
  engines.before(() => listener.close())
  return listener
}

async function leech(peers: readonly string[]): Promise<{ torrent: SwarmTorrent; folder: string }> {
  const folder = await fixture.target('leech')
  const torrent = engines.watch(
    (await engines.open({ pex: false })).add({
      info: fixture.info,
      pieceLayers: fixture.layers,
      storage: createFileStorage(folder),
      peers
    })
  )
  return { torrent, folder }
}

const named = (torrent: SwarmTorrent): readonly string[] =>
  engines.warningsOf(torrent).flatMap(({ lied, source }) => (lied ? [source.split(' ')[0]!] : []))

function flipped(bytes: Uint8Array): Uint8Array {
  const wrong = bytes.slice()
  wrong[0]! ^= 1
  return wrong
}

/**
 * An honest peer that gives the first blocks of a piece and keeps the others back until `until` resolves, so that somebody else
 * gives some of the same piece. `hashes`: as in {@link Script}.
 */
function slowHonest(until: Promise<unknown>, hashes?: Script['hashes']): Script {
  let given = 0
  return {
    ...(hashes && { hashes }),
    block: (bytes, { piece, begin }, to) => {
      given += 1
      if (given <= 2) return bytes
      void until.then(() => to.sendBlock(piece, begin, bytes))
      return undefined
    }
  }
}

/** A liar that announces its pieces once `after` resolves. */
const greetAfter = (after: Promise<unknown>) => (to: RawPeer) =>
  void after.then(() => {
    to.send(formatSimple(MESSAGE.haveAll))
    to.send(formatSimple(MESSAGE.unchoke))
  })

test('a peer that sends a wrong piece and hangs up at once is named, and not dialled again', async () => {
  let sent = 0
  const liar = await peer({
    block: (bytes, { piece, begin }, to) => {
      sent += bytes.length
      to.sendBlock(piece, begin, flipped(bytes))
      if (sent >= PIECE) to.socket.end()
      return undefined
    }
  })
  const { torrent, folder } = await leech([liar.address])
  await expect.poll(() => named(torrent)).toEqual([liar.address])
  const honest = await peer({})
  torrent.addPeer(honest.address)
  torrent.addPeer(liar.address)
  await torrent.completed()
  await expectFiles(fixture, folder)
  expect(liar.peers).toHaveLength(1)
})

test("a peer that corrupts a shared piece and answers no hash request is identified by another peer's hashes", async () => {
  const lied = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  // it joins first, so that it is asked for the hashes first.
  const liar = await peer({
    hashes: () => null,
    greet: greetAfter(begun.promise),
    block: (bytes) => {
      lied.resolve()
      return flipped(bytes)
    }
  })
  const { torrent, folder } = await leech([liar.address])
  await expect.poll(() => torrent.progress().peers).toBe(1)
  const asked: number[] = []
  const script = slowHonest(lied.promise)
  const honest = await peer({
    ...script,
    block: (bytes, block, to) => {
      asked.push(block.begin)
      return script.block!(bytes, block, to)
    }
  })
  torrent.addPeer(honest.address)
  await expect.poll(() => torrent.progress().downloadedBytes).toBeGreaterThan(0)
  begun.resolve()
  await torrent.completed()
  await expectFiles(fixture, folder)
  expect(named(torrent)).toEqual([liar.address])
})

test('without hashes, a liar that lets others deliver the piece is named once the piece is correct', async () => {
  const lied = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  let lies = 0
  const liar = await peer({
    hashes: () => undefined,
    greet: greetAfter(begun.promise),
    block: (bytes, { piece, begin, length }, to) => {
      lied.resolve()
      lies += 1
      if (lies === 1) return flipped(bytes)
      to.send(formatBlockRef(MESSAGE.reject, piece, begin, length))
      return undefined
    }
  })
  const honest = await peer(slowHonest(lied.promise, () => undefined))
  const { torrent, folder } = await leech([honest.address, liar.address])
  await expect.poll(() => torrent.progress().downloadedBytes).toBeGreaterThan(0)
  begun.resolve()
  await torrent.completed()
  await expectFiles(fixture, folder)
  expect(named(torrent)).toEqual([liar.address])
})

test('a liar that claims a suspicious piece first and then chokes does not prevent its completion', async () => {
  const lied = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  let lies = 0
  let hasLied = false
  const liar = await peer({
    hashes: () => undefined,
    greet: greetAfter(begun.promise),
    block: (bytes, { piece, begin, length }, to) => {
      lied.resolve()
      if (hasLied) {
        to.send(formatBlockRef(MESSAGE.reject, piece, begin, length))
        return undefined
      }
      hasLied = true
      lies += 1
      to.sendBlock(piece, begin, flipped(bytes))
      to.send(formatSimple(MESSAGE.choke))
      setImmediate(() => {
        hasLied = false
        to.send(formatSimple(MESSAGE.unchoke))
      })
      return undefined
    }
  })
  const { torrent, folder } = await leech([liar.address])
  await expect.poll(() => torrent.progress().peers).toBe(1)
  const honest = await peer(slowHonest(lied.promise, () => undefined))
  torrent.addPeer(honest.address)
  await expect.poll(() => torrent.progress().downloadedBytes).toBeGreaterThan(0)
  begun.resolve()
  await torrent.completed()
  await expectFiles(fixture, folder)
  expect(named(torrent)).toEqual([liar.address])
  expect(lies).toBeLessThan(64)
})
