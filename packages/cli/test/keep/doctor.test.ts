import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@svc/internal-clock'
import { NETWORK_FILE_SYSTEMS } from '@svc/internal-files'
import { describe, expect, it, onTestFinished } from 'vitest'
import cli from '../../package.json' with { type: 'json' }
import { judgeSkew } from '../../src/doctor/buckets.ts'
import { judgeFileLimit, judgeNode, OLDEST_NODE } from '../../src/doctor/daemon.ts'
import type { Finding } from '../../src/doctor/finding.ts'
import { judgeClock } from '../../src/doctor/network.ts'
import { judgeFileSystem, judgeSpace } from '../../src/doctor/store.ts'
import { QUIET_SWARM, svc, testDaemon } from '../support.ts'

interface Report {
  readonly ok: boolean
  readonly findings: readonly Finding[]
}
const read = (stdout: string): Report => JSON.parse(stdout)
const of = ({ findings }: Report, check: string): Finding[] => findings.filter((finding) => finding.check === check)
const levels = (report: Report, check: string): string[] => of(report, check).map(({ level }) => level)

describe('svc doctor', () => {
  it('runs every check, and finds nothing bad about a healthy daemon', async () => {
    const daemon = await testDaemon({ fileConfig: { swarm: QUIET_SWARM } })
    const ran = await daemon.svc('doctor', '--json')
    const report = read(ran.stdout)
    expect({ code: ran.code, stderr: ran.stderr, ok: report.ok }).toEqual({ code: 0, stderr: '', ok: true })
    const checks = ['node', 'daemon', 'socket', 'store', 'space', 'file system', 'listeners', 'DHT', 'proxies', 'clock']
    expect([...new Set(report.findings.map(({ check }) => check))]).toEqual(expect.arrayContaining(checks))
    expect(levels(report, 'socket')).toEqual(['ok'])
    expect(levels(report, 'store')).toEqual(['ok'])
    // both answer, on the loopback address.
    expect(of(report, 'listeners').map(({ text }) => text)).toEqual([
      expect.stringMatching(/^peers: 127\.0\.0\.1:\d+, from this machine only$/),
      expect.stringMatching(/^HTTP: 127\.0\.0\.1:\d+, from this machine only$/),
      expect.stringMatching(/^only this machine can fetch/)
    ])
    expect(of(report, 'DHT')[0]!.text).toMatch(/^off /)
    for (const { level, advice } of report.findings)
      if (level === 'warn' || level === 'bad') expect(advice).toBeTruthy()
    const lines = (await daemon.svc('doctor')).stdout.trimEnd().split('\n')
    expect(lines[0]).toMatch(/^ok {4}node/)
  })

  it('names the port of the DHT when it is on', async () => {
    const swarm = { ...QUIET_SWARM, dht: true, dht_bootstrap: [] }
    const daemon = await testDaemon({ fileConfig: { swarm } })
    const report = read((await daemon.svc('doctor', '--json')).stdout)
    expect(of(report, 'DHT')[0]!.text).toMatch(/^on, UDP port \d+; 0 peers in 0 torrents$/)
  })

  it('reports problems and their remedies, and exits with 1', async () => {
    const daemon = await testDaemon()
    chmodSync(daemon.socketPath, 0o666)
    chmodSync(daemon.root, 0o755)
    const ran = await daemon.svc('doctor')
    expect(ran.code).toBe(1)
    expect(ran.stdout).toContain(`chmod 600 ${daemon.socketPath}`)
    expect(ran.stdout).toContain(`chmod 700 ${daemon.root}`)
    expect(ran.stderr).toMatch(/^svc: 1 problem to fix: socket\n/)
    const quiet = await daemon.svc('doctor', '--quiet')
    expect(quiet.stdout).not.toMatch(/^(ok|note)/m)
  })

  it('checks the keys of buckets: their file, its mode, and the clock of the server', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-doctor-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const keys = join(folder, 'credentials')
    writeFileSync(keys, '[default]\naws_access_key_id = id\naws_secret_access_key = secret-of-the-test\n', {
      mode: 0o600
    })
    let date = new Date(systemClock.now())
    const bucket = createServer((_request, response) => response.writeHead(403, { date: date.toUTCString() }).end())
    await new Promise<void>((resolve) => bucket.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void bucket.close())
    const url = `http://127.0.0.1:${(bucket.address() as AddressInfo).port}/models/`
    const webseed = { [url]: { credentials_file: keys } }
    const daemon = await testDaemon({ fileConfig: { swarm: QUIET_SWARM, webseed } })
    const ask = async (): Promise<Report> => read((await daemon.svc('doctor', '--json')).stdout)
    const well = await ask()
    expect(levels(well, 'buckets')).toEqual(['ok'])
    expect(JSON.stringify(well)).not.toContain('secret-of-the-test')
    date = new Date(systemClock.now() - 3_600_000)
    expect(levels(await ask(), 'buckets')).toEqual(['ok', 'bad'])
    date = new Date(systemClock.now())
    chmodSync(keys, 0o644)
    const open = await ask()
    expect([open.ok, of(open, 'buckets')]).toEqual([
      false,
      [expect.objectContaining({ level: 'bad', advice: `chmod 600 ${keys}` })]
    ])
    rmSync(keys)
    expect(of(await ask(), 'buckets')).toMatchObject([{ level: 'bad', text: expect.stringContaining(keys) }])
  })

  it('works without a daemon', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-doctor-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    chmodSync(folder, 0o700)
    const none = read((await svc(['doctor', '--json'], { socketPath: join(folder, 's.sock') })).stdout)
    expect([none.ok, levels(none, 'daemon'), levels(none, 'socket')]).toEqual([false, ['bad'], ['note']])
    writeFileSync(join(folder, 'file'), '')
    const file = read((await svc(['doctor', '--json'], { socketPath: join(folder, 'file') })).stdout)
    expect(levels(file, 'socket')).toEqual(['bad'])
    mkdirSync(join(folder, 'open'))
    chmodSync(join(folder, 'open'), 0o777)
    const open = read((await svc(['doctor', '--json'], { socketPath: join(folder, 'open/s.sock') })).stdout)
    expect(levels(open, 'socket')).toEqual(['bad'])
    const far = join(folder, 'x'.repeat(120))
    const long = read((await svc(['doctor', '--json'], { socketPath: far })).stdout)
    expect(levels(long, 'socket')).toContain('bad')
  })
})

describe('judgements', () => {
  it('Node', () => {
    expect(`>=${OLDEST_NODE.join('.')}`).toBe(cli.engines.node)
    const level = (version: string): string => judgeNode(version).level
    expect([level('22.18.9'), level('22.19.0'), level('24.0.0'), level('20.20.0')]).toEqual(['bad', 'ok', 'ok', 'bad'])
  })

  it.each([
    ['nfs', 'warn', /memory/],
    ['smbfs', 'warn', /memory/],
    ['tmpfs', 'warn', /restart/],
    ['overlay', 'warn', /container/],
    ['vfat', 'bad', /permissions/],
    ['ext4', 'ok', /ext4/],
    ['xfs', 'ok', /twice/],
    ['apfs', 'ok', /twice/],
    ['nfs4', 'warn', /memory/],
    ['fuse.sshfs', 'note', /depends/],
    ['somefs', 'note', /does not know/],
    [undefined, 'note', /unknown/]
  ] as const)('file system %s: %s', (type, level, text) => {
    expect(judgeFileSystem(type)).toMatchObject({ level, text: expect.stringMatching(text) })
  })

  it.each([...NETWORK_FILE_SYSTEMS.values()])('doctor knows %s, which the daemon reads off its event loop', (name) => {
    expect(judgeFileSystem(name).text).toMatch(/network|depends/)
  })

  it('free space', () => {
    const gib = 2 ** 30
    const level = (...figures: Parameters<typeof judgeSpace>): string => judgeSpace(...figures)[0]!.level
    expect(level(0.5 * gib, 100 * gib, 1e6, 1e7)).toBe('bad')
    expect(level(5 * gib, 100 * gib, 1e6, 1e7)).toBe('warn')
    expect(level(50 * gib, 100 * gib, 1e6, 1e7)).toBe('ok')
    expect(level(50 * gib, 100 * gib, 10, 1e7)).toBe('bad')
    expect(level(50 * gib, 100 * gib, 0, 0)).toBe('ok')
  })

  it('clock and limits', () => {
    const now = Date.parse('2026-11-22')
    expect(judgeClock(Date.parse('1970-01-02'), undefined, undefined)[0]!.level).toBe('bad')
    expect(judgeClock(now, now + 60_000, true)[0]!.level).toBe('warn')
    expect(judgeClock(now, now - 1, false)[0]!.level).toBe('note')
    expect(judgeClock(now, now - 1, undefined)[0]!.level).toBe('ok')
    const skewed = (minutes: number) => judgeSkew('http://x/', new Date(now + minutes * 60_000).toUTCString(), now)
    expect([0, 4, 6, -16].map((minutes) => skewed(minutes)[0]?.level)).toEqual([undefined, undefined, 'warn', 'bad'])
    expect(judgeSkew('http://x/', undefined, now)).toEqual([])
    expect(['1024', '4096', 'unlimited', undefined].map((soft) => judgeFileLimit(soft).level)).toEqual([
      'warn',
      'ok',
      'ok',
      'warn'
    ])
  })
})
