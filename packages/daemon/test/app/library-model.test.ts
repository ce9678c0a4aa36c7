import { expect, onTestFinished, test } from 'vitest'
import { testDaemon } from '../support/daemon.ts'
import { LibraryModel, seededRandom } from '../support/library-model.ts'

/** More in the longer tier. */
const RUNS = Number(process.env.SVC_MODEL_RUNS ?? 4)
const STEPS = 60

test.each(Array.from({ length: RUNS }, (_, seed) => seed + 1))(
  '%i: random steps agree with a simple model',
  async (seed) => {
    const model = new LibraryModel(await testDaemon(), seededRandom(seed))
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
