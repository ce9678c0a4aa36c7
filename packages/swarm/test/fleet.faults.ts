import { afterEach, beforeEach, expect, test } from 'vitest'
import { createFileStorage } from '../src/index.ts'
import { formatSimple, MESSAGE } from '../src/wire/messages.ts'
import { Engines, expectFiles } from './engines.ts'
import { listenRaw, type Script } from './raw-peer.ts'
import type { Fixture } from './torrent-fixture.ts'
import { startWebseed } from './webseed-server.ts'

// Slow by nature: a near peer is given some seconds before the webseed is used for the pieces that it claims.

const PIECE = 65_536
const engines = new Engines()
let fixture: Fixture
beforeEach(async () => {
  fixture = await engines.torrent({ a: 100 * PIECE - 7, b: 100_000 }, PIECE)
})
afterEach(() => engines.close())

/** Blocks after 2, 4, 6 … seconds. */
function trickle(): Script {
  let asked = 0
  return {
    block: (honest, { piece, begin }, peer) => {
      asked += 1
      setTimeout(() => peer.sendBlock(piece, begin, honest), asked * 2_000).unref()
      return undefined
    }
  }
}

test.each([
  ['gives a block now and then', trickle()],
  ['answers nothing', { block: () => undefined }],
  ['never unchokes', { greet: (peer) => peer.send(formatSimple(MESSAGE.haveAll)) }]
] satisfies [string, Script][])(
  'a trusted peer that claims everything and %s keeps no node from its webseed or its last pieces',
  { timeout: 60_000 },
  async (_, script) => {
    const [server, liar] = await Promise.all([startWebseed(fixture), listenRaw(fixture, script)])
    try {
      const folder = await fixture.target('node')
      const torrent = (await engines.open({ trusted: ['127.0.0.0/8'] })).add({
        info: fixture.info,
        pieceLayers: fixture.layers,
        storage: createFileStorage(folder),
        peers: [liar.address],
        webseeds: [server.url]
      })
      // a request that is not answered is given up after 64 s
      await torrent.completed(AbortSignal.timeout(45_000))
      await expectFiles(fixture, folder)
      expect(liar.peers).toHaveLength(1)
    } finally {
      await liar.close()
      await server.close()
    }
  }
)
