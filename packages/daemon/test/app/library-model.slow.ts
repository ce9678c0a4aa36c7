import type { ShareResult } from '@svc/client/protocol'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { InspectedOptions } from '../../src/app/daemon.ts'
import { openSwarm } from '../../src/app/open-swarm.ts'
import { sharedByFile, testDaemon } from '../support/daemon.ts'
import { LibraryModel, modelFiles, seededRandom } from '../support/library-model.ts'
import { Node } from '../swarm/nodes.ts'

/** More in the longer tier. */
const RUNS = Number(process.env.SVC_MODEL_RUNS ?? 2)
const IS_LONG = RUNS > 10
const STEPS = 60
vi.setConfig({ testTimeout: IS_LONG ? 30 * 60_000 : 90_000 })

/** The swarm on loopback; what it seeds is not the subject here. */
const WITH_SWARM: Partial<InspectedOptions> = {
  fileConfig: { swarm: { dht: false, peer_addr: '127.0.0.1:0', webseed_addr: '127.0.0.1:0', seed: false } },
  networks: { swarm: (deps) => openSwarm(deps) }
}

/** Two models of the same bytes as what is imported from disk, and one of its own. */
const seeder = sharedByFile(async (cleanUp) => {
  const node = await Node.start({}, cleanUp)
  const shares: ShareResult[] = []
  for (const [quant, content] of [
    ['q8_0', 0],
    ['q4_0', 1],
    ['q6_k', 77]
  ] as const)
    shares.push(await node.publish(modelFiles(quant, content), `far/m${content}`))
  return shares
})

test.each(Array.from({ length: RUNS }, (_, seed) => seed + 1))(
  '%i: random steps agree with a simple model',
  async (seed) => {
    // fills bring a swarm along: in one of four
    const shares = seed % 4 === 0 ? await seeder() : undefined
    const daemonOptions = shares === undefined ? {} : WITH_SWARM
    const model = new LibraryModel(await testDaemon(daemonOptions), seededRandom(seed), {
      daemonOptions,
      ...(shares && { shares }),
      maxAtOnce: IS_LONG ? 50 : 4
    })
    onTestFinished(async () => {
      model.daemon.agent.destroy()
      await model.daemon.running.close({ quick: true })
    })
    const done: string[] = []
    for (let step = 0; step < STEPS; step += 1) {
      try {
        done.push(await model.step())
      } catch (error) {
        throw new Error(`seed ${seed}, after ${done.join(' ')}`, { cause: error })
      }
    }
    await model.restart()
    await model.list()
    await model.verify()
    expect(done).toHaveLength(STEPS)
  }
)
