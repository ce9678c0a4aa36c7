/**
 * `pnpm demo NAME`: demonstrates one feature on loopback, in temporary folders. It narrates each step, ends by itself, and leaves
 * nothing behind. A demo is a file next to this one that exports `run(stage)`.
 */
import { Stage } from './stage.ts'

const DEMOS: Readonly<Record<string, () => Promise<{ run(stage: Stage): Promise<void> }>>> = {
  airgap: () => import('./airgap.ts'),
  fleet: () => import('./fleet.ts'),
  life: () => import('./life.ts'),
  mirror: () => import('./mirror.ts')
}

const [name = '', ...rest] = process.argv.slice(2)
const load = Object.hasOwn(DEMOS, name) ? DEMOS[name] : undefined
if (load === undefined || rest.length > 0) {
  console.error(`usage: pnpm demo ${Object.keys(DEMOS).sort().join('|')}`)
  process.exit(2)
}
const stage = new Stage()
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void stage.close().then(() => process.exit(130)))
try {
  await (await load()).run(stage)
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  await stage.close()
}
