import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { temporaryFolder, testDaemon } from '../support/daemon.ts'
import { gguf } from '../support/models.ts'

it('a folder that is added again while it is being filled is filled once', async () => {
  const folder = temporaryFolder()
  const daemon = await testDaemon()
  writeFileSync(join(folder, 'm-q8_0.gguf'), gguf(2_000, 1))
  await daemon.import([join(folder, 'm-q8_0.gguf')], 'me/m')
  const { standing } = daemon.running.context.views
  const sync = standing.sync.bind(standing)
  const [begun, go] = [Promise.withResolvers<AbortSignal | undefined>(), Promise.withResolvers<void>()]
  onTestFinished(() => go.resolve())
  // as long as a large copy
  standing.sync = async (request, call) => {
    begun.resolve(call?.signal)
    await go.promise
    return await sync(request, call)
  }
  const path = join(folder, 'tool')
  const add = () =>
    daemon.running.context.standing.add({ layout: 'lmstudio', path, match: [], matches: () => true, copy: true })
  const first = add()
  const signal = await begun.promise
  const second = add()
  // it does what it does before it waits
  await new Promise((resolve) => setImmediate(resolve))
  expect(signal?.aborted).toBe(false)
  go.resolve()
  for (const view of await Promise.all([first, second])) expect(view).toMatchObject({ entries: 1 })
  expect(existsSync(join(path, 'me/m/m-q8_0.gguf'))).toBe(true)
})
