import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'

const CHILD = fileURLToPath(new URL('./rebinding-child.ts', import.meta.url))
const NAMES = fileURLToPath(new URL('./rebinding-names.ts', import.meta.url))
const isolated = (command: string, env: NodeJS.ProcessEnv = {}): ReturnType<typeof spawnSync> =>
  spawnSync('unshare', ['--map-root-user', '--net', 'sh', '-c', command], {
    encoding: 'utf8',
    timeout: 120_000,
    env: { ...process.env, NODE_OPTIONS: '', ...env }
  })
const NETWORK = 'ip link set lo up && ip address add 8.8.8.8/32 dev lo'
const canIsolate = isolated(NETWORK).status === 0

// Needs unshare and ip (util-linux, iproute2), and a kernel that lets this user make a network.
test.skipIf(!canIsolate)(
  'DNS rebinding of a hub or its redirects reaches no private address',
  { timeout: 180_000 },
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-hub-rebinding-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const lookups = join(folder, 'lookups')
    writeFileSync(lookups, '')
    const { stdout, stderr, status } = isolated(
      `${NETWORK} && exec ${process.execPath} --conditions=svc-source --import ${NAMES} ${CHILD}`,
      { SVC_TEST_LOOKUPS: lookups }
    )
    expect([status, stderr]).toEqual([0, expect.anything()])
    const refused = { outside: 1, inner: 0, reason: 'refused-redirect' }
    expect(JSON.parse(String(stdout))).toEqual({
      'a sink in memory': refused,
      'a sink that threads write to': refused,
      'an endpoint that a stranger named': { ...refused, outside: 0 }
    })
  }
)
