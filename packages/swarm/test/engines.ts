import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { expect } from 'vitest'
import {
  createFileStorage,
  type Swarm,
  type SwarmOptions,
  type SwarmTorrent,
  type SwarmTorrentOptions,
  type TorrentWarning
} from '../src/index.ts'
import { type Engine, startEngine } from '../src/swarm.ts'
import type { Fixture } from './torrent-fixture.ts'

/** Of this process. */
const udpSockets = (): number => process.getActiveResourcesInfo().filter((name) => name === 'UDPWrap').length

/** Engines of one test; closed together, after their invariants were checked. */
export class Engines {
  readonly #swarms: Engine[] = []
  readonly warnings = new Map<SwarmTorrent, TorrentWarning[]>()
  /** Engines have their number for UDP as well: where another program of this machine has it, the next one is opened. */
  overUdp = false

  async open(options: SwarmOptions = {}): Promise<Engine> {
    for (let tries = 1; ; tries += 1) {
      const before = udpSockets()
      const swarm = await startEngine({ peerAddress: { host: '127.0.0.1', port: 0 }, verifyThreads: 1, ...options })
      this.#swarms.push(swarm)
      if (!this.overUdp || tries === 10) return swarm
      // one that could not be bound is gone after two turns of the event loop
      for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve))
      if (udpSockets() > before) return swarm
    }
  }

  /** A swarm that seeds the fixture. */
  async seed(
    fixture: Fixture,
    options: SwarmOptions = {},
    more: Partial<SwarmTorrentOptions> = {}
  ): Promise<{ swarm: Swarm; torrent: SwarmTorrent; address: string }> {
    const swarm = await this.open(options)
    const torrent = this.watch(
      swarm.add({
        info: fixture.info,
        pieceLayers: fixture.layers,
        storage: createFileStorage(fixture.folder, { trusted: true }),
        seedOnly: true,
        ...more
      })
    )
    return { swarm, torrent, address: `127.0.0.1:${swarm.port}` }
  }

  watch(torrent: SwarmTorrent): SwarmTorrent {
    const list: TorrentWarning[] = []
    this.warnings.set(torrent, list)
    torrent.on('warning', (warning) => list.push(warning))
    return torrent
  }

  warningsOf(torrent: SwarmTorrent): readonly TorrentWarning[] {
    return this.warnings.get(torrent)!
  }

  async close(): Promise<void> {
    for (const swarm of this.#swarms) swarm.checkInvariants()
    await Promise.all(this.#swarms.splice(0).map((swarm) => swarm.close()))
  }
}

/** Every file of the fixture is at `folder/<torrent name>/<path>`, byte for byte. */
export async function expectFiles(fixture: Fixture, folder: string): Promise<void> {
  for (const [file, bytes] of fixture.files) {
    const found = await readFile(path.join(folder, fixture.info.name, file))
    expect(Buffer.compare(found, bytes), file).toBe(0)
  }
}
