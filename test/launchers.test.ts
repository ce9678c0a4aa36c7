import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { DAEMON_NODE_FLAGS } from '../packages/cli/src/service/daemon-command.ts'

const root = join(import.meta.dirname, '..')
const FLAGS = DAEMON_NODE_FLAGS.join(' ')

test.each([
  ['the package', 'packages/daemon/bin/svcd.cjs', `exec node ${FLAGS} "$0" "$@"`],
  ['a checkout', 'bin/svc', `room=daemon flags=${FLAGS} ;;`],
  ['tests', 'packages/testkit/src/programs.ts', `SVCD = ['${FLAGS}', `],
  ['measurements', 'bench/harness/daemon.ts', `NODE_FLAGS = ['${FLAGS}']`]
])('%s starts svcd with the same options of Node as a service does', (_, file, line) => {
  expect(readFileSync(join(root, file), 'utf8')).toContain(line)
})
