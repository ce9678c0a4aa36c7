// Every defect of the table of malformed torrents, as the metadata that a peer gives a running daemon: it hashes to the infohash that was
// asked for, so that only its content can be refused.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { BencodeDictionary, decodeBencode, encodeBencode } from '@svc/metainfo'
import { expect, onTestFinished, test } from 'vitest'
import { TORRENT_CASES } from '../../../metainfo/test/malformed-torrents.ts'
import { createLog } from '../../src/log.ts'
import { Node } from './nodes.ts'

const PIECE_BYTES = 16_384
/** The numbers that this peer wants its metadata messages to have, and the one that the daemon has for extended ones. */
const UT_METADATA = 3
const EXTENDED = 20

/** The info dictionary of a torrent as it stands there; undefined where there is none. */
function infoOf(torrent: Uint8Array): Uint8Array | undefined {
  try {
    const root = decodeBencode(torrent, { maxBytes: 64 << 20, maxDepth: 1000, maxTokens: 1_000_000 })
    return root instanceof BencodeDictionary ? root.span('info') : undefined
  } catch {
    return undefined
  }
}

function extended(id: number, head: object, rest: Uint8Array = new Uint8Array()): Buffer {
  const body = Buffer.concat([Buffer.of(EXTENDED, id), encodeBencode(head as never), rest])
  const length = Buffer.alloc(4)
  length.writeUInt32BE(body.length)
  return Buffer.concat([length, body])
}

/** A peer that has the metadata of every infohash in `infos`, and gives whatever piece of it is asked for. */
async function giver(
  infos: ReadonlyMap<string, Uint8Array>
): Promise<{ readonly address: string; readonly given: Set<string> }> {
  const given = new Set<string>()
  const server = createServer((socket: Socket) => {
    let held = Buffer.alloc(0)
    let info: Uint8Array | undefined
    let key = ''
    let theirs = 0
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => {
      held = Buffer.concat([held, bytes])
      if (info === undefined) {
        if (held.length < 68) return
        key = held.toString('hex', 28, 48)
        info = infos.get(key)
        if (info === undefined) return void socket.destroy()
        socket.write(
          Buffer.concat([
            held.subarray(0, 20),
            Buffer.from([0, 0, 0, 0, 0, 0x10, 0, 0x10]),
            held.subarray(28, 48),
            Buffer.from('-MM0001-abcdefghijkl')
          ])
        )
        socket.write(extended(0, { m: { ut_metadata: UT_METADATA }, metadata_size: info.length }))
        held = held.subarray(68)
      }
      while (held.length >= 4 && held.length >= 4 + held.readUInt32BE()) {
        const message = held.subarray(4, 4 + held.readUInt32BE())
        held = held.subarray(4 + message.length)
        if (message[0] !== EXTENDED) continue
        const text = message.toString('latin1')
        if (message[1] === 0) theirs = Number(/ut_metadatai(\d+)e/.exec(text)?.[1] ?? 0)
        else if (message[1] === UT_METADATA) {
          const piece = Number(/5:piecei(\d+)e/.exec(text)![1])
          given.add(key)
          socket.write(
            extended(
              theirs,
              { msg_type: 1, piece, total_size: info.length },
              info.subarray(piece * PIECE_BYTES, (piece + 1) * PIECE_BYTES)
            )
          )
        }
      }
    })
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, given }
}

test('malformed metadata from a peer fails the import, and nothing else', async () => {
  const lines: { readonly level: string; readonly msg: string }[] = []
  const log = createLog('info', 'json', { write: (line) => void lines.push(JSON.parse(line)) })
  const node = await Node.start({ swarm: { fill_timeout: 2 }, more: { log } })
  const infos = new Map<string, Uint8Array>()
  const cases: { readonly name: string; readonly infohash: string }[] = []
  for (const { name, bytes } of TORRENT_CASES) {
    const info = infoOf(bytes)
    if (info === undefined || info.length === 0) continue
    const hash = createHash('sha256').update(info).digest('hex')
    infos.set(hash.slice(0, 40), info)
    cases.push({ name, infohash: `btmh:1220${hash}` })
  }
  expect(cases.length).toBeGreaterThan(40)
  const { address, given } = await giver(infos)
  const jobs = await Promise.all(
    cases.map(async ({ infohash }, i) =>
      node.done(
        await node.client.importBt({
          infohash,
          manifestDigest: `sha256:${createHash('sha256').update(String(i)).digest('hex')}`,
          peers: [address],
          manifestFromPeers: true
        })
      )
    )
  )
  const codes = new Map(jobs.map((job, i) => [cases[i]!.name, `${job.state} ${job.error?.code}`]))
  expect(given.size).toBe(infos.size)
  for (const [name, outcome] of codes)
    expect([name, outcome]).toEqual([name, expect.stringMatching(/^failed E_(SOURCE_UNAVAILABLE|NOT_IMPORTABLE)$/)])
  expect(node.blobs()).toEqual([])
  expect(lines.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([])
  expect((await node.client.status()).swarm.peers).toBe(0)
})
