import { fileURLToPath } from 'node:url'

/** `pnpm test` sets this after building every package: built programs start with half the work. */
const isBuilt = process.env.SVC_TEST_BUILT === '1'

function program(built: string, source: string): readonly string[] {
  const path = (from: string): string => fileURLToPath(new URL(`../../${from}`, import.meta.url))
  return isBuilt ? [path(built)] : ['--conditions=svc-source', '--disable-warning=ExperimentalWarning', path(source)]
}

/** Node's arguments to run `svcd`. */
export const SVCD = ['--max-semi-space-size=1', ...program('daemon/bin/svcd.cjs', 'daemon/src/app/main.ts')]

/** Node's arguments to run `svc`. */
export const SVC = program('cli/bin/svc.cjs', 'cli/src/main.ts')
