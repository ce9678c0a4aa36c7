import { fileURLToPath } from 'node:url'

/** `pnpm test` has just built every package, and says so: the programs that people run start with half the work then. */
const isBuilt = process.env.SVC_TEST_BUILT === '1'

function program(built: string, source: string): readonly string[] {
  const path = (from: string): string => fileURLToPath(new URL(`../../${from}`, import.meta.url))
  return isBuilt ? [path(built)] : ['--conditions=svc-source', '--disable-warning=ExperimentalWarning', path(source)]
}

/** Arguments of Node that run `svcd`. */
export const SVCD = program('daemon/bin/svcd.cjs', 'daemon/src/app/main.ts')

/** Arguments of Node that run `svc`. */
export const SVC = program('cli/bin/svc.cjs', 'cli/src/main.ts')
