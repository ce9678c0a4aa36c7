import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'

const run = promisify(execFile)
const units = fileURLToPath(new URL('../systemd/', import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'svc-units-'))
afterAll(() => rmSync(scratch, { recursive: true }))

const hasAnalyze = (() => {
  try {
    return (
      Number(/^systemd (\d+)/.exec(execFileSync('systemd-analyze', ['--version'], { encoding: 'utf8' }))?.[1]) >= 252
    )
  } catch {
    return false
  }
})()
/** With `SVC_REQUIRE_INTEROP=1` the tests run, and fail, without it. */
const mustSkip = !hasAnalyze && process.env.SVC_REQUIRE_INTEROP !== '1'

const linesOf = (path: string): string[] => readFileSync(path, 'utf8').split('\n')

describe.each(['user', 'system'])('%s units', (kind) => {
  const folder = join(units, kind)

  test("the socket is the owner's alone", () => {
    expect(readFileSync(join(folder, 'svcd.socket'), 'utf8')).toMatch(/^SocketMode=0600$/m)
    expect(readFileSync(join(folder, 'svcd.service'), 'utf8')).toMatch(/^UMask=0077$/m)
  })

  test('the daemon may list the network interfaces and write beside its socket', () => {
    const service = readFileSync(join(folder, 'svcd.service'), 'utf8')
    expect(service).toMatch(/^RestrictAddressFamilies=.*\bAF_NETLINK\b/m)
    if (kind === 'user') return
    expect(service).toMatch(/^RuntimeDirectory=svc$[\s\S]*^RuntimeDirectoryPreserve=yes$/m)
    // the home of its user is the store
    expect(service).toMatch(
      /^Environment=.* XDG_STATE_HOME=\/var\/lib\/svc-state$[\s\S]*^StateDirectory=svc svc-state$/m
    )
  })

  test("no other user can enter the socket's folder or gain the service's rights", () => {
    const socket = linesOf(join(folder, 'svcd.socket'))
    const service = linesOf(join(folder, 'svcd.service'))
    // /run/svc has a socket that only its owner may open, and runtime.json, which all may read
    expect(socket).toContain(kind === 'user' ? 'DirectoryMode=0700' : 'DirectoryMode=0755')
    for (const line of socket)
      expect(line).not.toMatch(/^(?:Accept|SocketMode=0?[0-7]*[1-7]$|ListenDatagram|ListenStream=\d)/)
    for (const line of ['NoNewPrivileges=yes', 'RestrictSUIDSGID=yes', 'RestrictNamespaces=yes', 'LockPersonality=yes'])
      expect(service).toContain(line)
    if (kind === 'system') {
      for (const line of [
        'User=svc',
        'CapabilityBoundingSet=',
        'AmbientCapabilities=',
        'ProtectSystem=strict',
        'PrivateDevices=yes'
      ])
        expect(service).toContain(line)
      expect(socket).toEqual(expect.arrayContaining(['SocketUser=svc', 'SocketGroup=svc']))
      // what it writes to lies below what it is given
      expect(
        service.filter((line) => /^(?:ReadWritePaths|BindPaths|ExecStartPre|PermissionsStartOnly)/.test(line))
      ).toEqual([])
    }
    // each directive is there once: the last one would win
    const names = service.filter((line) => /^[A-Z]\w+=/.test(line)).map((line) => line.split('=')[0])
    expect(names).toEqual([...new Set(names)])
  })

  test.skipIf(mustSkip)('systemd finds no fault in them', async () => {
    const copies = join(scratch, kind)
    mkdirSync(join(copies, 'runtime'), { recursive: true })
    const paths = readdirSync(folder).map((name) => {
      const text = readFileSync(join(folder, name), 'utf8')
        .replace('/usr/bin/env svcd', '/bin/true')
        .replace('/usr/bin/env svc ', '/bin/true ')
      writeFileSync(join(copies, name), text)
      return join(copies, name)
    })
    const { stdout, stderr } = await run(
      'systemd-analyze',
      ['verify', ...(kind === 'user' ? ['--user'] : []), ...paths],
      { env: { ...process.env, XDG_RUNTIME_DIR: join(copies, 'runtime') } }
    )
    expect(stdout + stderr).toBe('')
  })
})

// The scale is 0 (confined) to 10 (exposed), times ten. A user's manager cannot narrow the file system, which is most of the difference;
// without its filter of system calls, families of addresses or namespaces the user service is above its bound.
test.skipIf(mustSkip).each([
  ['system', 20],
  ['user', 67]
])('the %s service is confined', async (kind, threshold) => {
  await run('systemd-analyze', [
    'security',
    '--offline=true',
    '--no-pager',
    `--threshold=${threshold}`,
    join(units, kind, 'svcd.service')
  ])
})
