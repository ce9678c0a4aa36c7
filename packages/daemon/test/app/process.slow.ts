import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { type InspectedOptions, startInspected } from '../../src/app/daemon.ts'
import { tagCommand } from '../../src/commands/tag.ts'
import { StartError } from '../../src/errors.ts'
import { parseFlags } from '../../src/flags.ts'
import { temporaryFolder, testDaemon } from '../support/daemon.ts'
import { gguf, MODEL, seededBytes, writeFiles } from '../support/models.ts'
import { runSvcd, spawnDaemon } from '../support/process.ts'
import { HAS_STRACE, inject } from '../support/strace.ts'

const can = (command: string, ...args: string[]): boolean => spawnSync(command, args).status === 0
const mode = (path: string): number => statSync(path).mode & 0o777

// Only what shows no other way starts a process: each one loads the whole daemon.
vi.setConfig({ testTimeout: 120_000 })
afterEach(() => void vi.unstubAllEnvs())

const refusal = (options: InspectedOptions): Promise<unknown> =>
  startInspected({ fileConfig: { swarm: { enabled: false } }, networks: {}, ...options }).then(
    (daemon) => daemon.close({ quick: true }),
    (error: unknown) => error
  )

describe('starting', () => {
  it('creates socket, folder and files for the owner only, and writes runtime.json', async () => {
    const folder = temporaryFolder()
    const daemon = await spawnDaemon({
      folder,
      args: ['--root', join(folder, 'root'), '--config', join(folder, 'off.toml')]
    })
    const base = join(folder, `svc-${process.geteuid!()}`)
    expect([
      mode(base),
      mode(join(base, 'svc.sock')),
      mode(join(base, 'runtime.json')),
      mode(join(folder, 'root'))
    ]).toEqual([0o700, 0o600, 0o600, 0o700])
    const runtime = JSON.parse(readFileSync(join(base, 'runtime.json'), 'utf8'))
    expect(runtime).toMatchObject({ pid: daemon.child.pid, root: join(folder, 'root'), socket: join(base, 'svc.sock') })
    daemon.child.kill('SIGTERM')
    expect(await daemon.ended).toEqual({ code: 0, signal: null })
    expect([existsSync(join(base, 'svc.sock')), existsSync(join(base, 'runtime.json'))]).toEqual([false, false])
  })

  it('prints its version and its flags', () => {
    const folder = temporaryFolder()
    expect(runSvcd(folder, ['--version'])).toMatchObject({ code: 0, err: '' })
    expect(runSvcd(folder, ['--help']).out).toContain('svcd tag set')
    const { code, err } = runSvcd(folder, ['nonsense'])
    expect([code, err.startsWith('svcd: ')]).toEqual([2, true])
    for (const args of [['--nonsense'], ['--root', ''], ['--log-level', 'loud']])
      expect(() => parseFlags(args)).toThrowError(StartError)
  })

  it('refuses a bad configuration, naming file, key and the known keys', () => {
    const folder = temporaryFolder()
    const file = join(folder, 'c.toml')
    writeFileSync(file, '[swarm]\nenabel = true\n')
    const { code, err } = runSvcd(folder, [], { SVC_CONFIG: file })
    expect(code).toBe(2)
    for (const part of [file, 'enabel', 'upload_limit']) expect(err).toContain(part)
  })

  it('refuses a root or a socket that is in use, and takes over after a kill', async () => {
    const folder = temporaryFolder()
    const daemon = await spawnDaemon({ folder })
    const sameRoot = await refusal({ root: join(folder, 'root'), socketPath: join(folder, 'other.sock') })
    expect(sameRoot).toBeInstanceOf(StartError)
    expect((sameRoot as Error).message).toContain(String(daemon.child.pid))
    expect(await refusal({ root: join(folder, 'other'), socketPath: join(folder, 's.sock') })).toBeInstanceOf(
      StartError
    )
    expect(existsSync(join(folder, 'other'))).toBe(false)
    expect((await daemon.get('/v1/jobs')).status).toBe(200)
    daemon.child.kill('SIGKILL')
    await daemon.ended
    expect(existsSync(join(folder, 's.sock'))).toBe(true)
    const next = await testDaemon({ folder })
    expect((await next.get('/v1/jobs')).status).toBe(200)
    expect(mode(join(folder, 's.sock'))).toBe(0o600)
  })

  it('refuses a path that is not a socket, a linked folder and a long path', async () => {
    const folder = temporaryFolder()
    const root = join(folder, 'root')
    writeFileSync(join(folder, 'file'), 'precious')
    expect(await refusal({ root, socketPath: join(folder, 'file') })).toBeInstanceOf(StartError)
    expect(readFileSync(join(folder, 'file'), 'utf8')).toBe('precious')
    mkdirSync(join(folder, 'real'))
    mkdirSync(join(folder, 'run'))
    symlinkSync(join(folder, 'real'), join(folder, 'run', `svc-${process.geteuid!()}`))
    vi.stubEnv('SVC_SOCKET', '')
    vi.stubEnv('XDG_RUNTIME_DIR', join(folder, 'run'))
    expect(await refusal({ root })).toBeInstanceOf(StartError)
    expect(await refusal({ root, socketPath: `${folder}/${'x'.repeat(108 - folder.length - 1)}` })).toBeInstanceOf(
      StartError
    )
    expect(existsSync(root)).toBe(false)
  })

  it('refuses a root whose store is not mounted, and makes a new one only with --new', async () => {
    const folder = temporaryFolder()
    const [root, off] = [join(folder, 'root'), join(folder, 'off.toml')]
    const args = ['--root', root, '--socket', join(folder, 's.sock'), '--config', off]
    const stopped = async (...more: string[]): Promise<string> => {
      const daemon = await spawnDaemon({ folder, args: [...args, ...more] })
      daemon.agent.destroy()
      daemon.child.kill('SIGTERM')
      expect((await daemon.ended).code).toBe(0)
      return readFileSync(join(root, 'id'), 'utf8').trim()
    }
    const first = await stopped()
    renameSync(root, join(folder, 'away'))
    mkdirSync(root, { mode: 0o755 })
    for (const words of [[], ['--check'], ['tag', 'ls'], ['expect']]) {
      const { code, out, err } = runSvcd(folder, [...args, ...words])
      expect([words, code, out]).toEqual([words, 2, ''])
      for (const part of [first, 'svcd --new']) expect(err).toContain(part)
    }
    expect([readdirSync(root), mode(root)]).toEqual([[], 0o755])
    const second = await stopped('--new')
    expect(second).not.toBe(first)
    renameSync(root, join(folder, 'second'))
    renameSync(join(folder, 'away'), root)
    const { code, err } = runSvcd(folder, args)
    expect(code).toBe(2)
    for (const part of [first, second]) expect(err).toContain(part)
  })

  it('accepts a socket path of 107 bytes, and restricts its own folder', async () => {
    const folder = temporaryFolder()
    const path = `${folder}/${'x'.repeat(107 - folder.length - 1)}`
    const first = await testDaemon({ folder, socketPath: path })
    expect(mode(path)).toBe(0o600)
    await first.running.close({ quick: true })
    const own = join(folder, `svc-${process.geteuid!()}`)
    mkdirSync(own)
    chmodSync(own, 0o777)
    vi.stubEnv('SVC_SOCKET', '')
    vi.stubEnv('XDG_RUNTIME_DIR', folder)
    const daemon = await startInspected({
      root: join(folder, 'root'),
      fileConfig: { swarm: { enabled: false } },
      networks: {}
    })
    onTestFinished(() => daemon.close({ quick: true }))
    expect(daemon.socketPath).toBe(join(own, 'svc.sock'))
    expect(mode(own)).toBe(0o700)
  })

  it('takes the path of SVC_SOCKET, whatever the umask, and makes its folder', async () => {
    const folder = temporaryFolder()
    vi.stubEnv('SVC_SOCKET', join(folder, 'new/my.sock'))
    const umask = process.umask(0)
    try {
      const daemon = await startInspected({
        root: join(folder, 'root'),
        fileConfig: { swarm: { enabled: false } },
        networks: {}
      })
      onTestFinished(() => daemon.close({ quick: true }))
      expect(daemon.socketPath).toBe(join(folder, 'new/my.sock'))
      expect([mode(daemon.socketPath), mode(join(folder, 'new')), mode(join(folder, 'root'))]).toEqual([
        0o600, 0o700, 0o700
      ])
    } finally {
      process.umask(umask)
    }
  })

  it('two at once on one root: one starts and one is refused, 20 times', async () => {
    const folder = temporaryFolder()
    for (let round = 0; round < 20; round++) {
      const options = { root: join(folder, 'root'), fileConfig: { swarm: { enabled: false } }, networks: {} }
      const both = await Promise.allSettled(
        [1, 2].map((i) => startInspected({ ...options, socketPath: join(folder, `${i}.sock`) }))
      )
      for (const each of both) if (each.status === 'fulfilled') await each.value.close({ quick: true })
      expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
      for (const each of both) if (each.status === 'rejected') expect(each.reason).toBeInstanceOf(StartError)
    }
  })

  it('takes a socket from a service manager, and leaves its file', async () => {
    const folder = temporaryFolder()
    const path = join(folder, 's.sock')
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(path, resolve))
    chmodSync(path, 0o600)
    onTestFinished(() => void server.close())
    const { fd } = (server as Server & { _handle: { fd: number } })._handle
    const activated = {
      folder,
      args: ['--root', join(folder, 'root'), '--config', join(folder, 'off.toml')],
      wrapper: ['/bin/sh', '-c', 'LISTEN_PID=$$ exec "$@"', 'sh'],
      env: { LISTEN_FDS: '1' },
      descriptor: fd
    }
    chmodSync(path, 0o666)
    await expect(spawnDaemon(activated)).rejects.toThrow('"code":2')
    chmodSync(path, 0o600)
    const daemon = await spawnDaemon(activated)
    server.unref()
    expect(daemon.log.at(-1)).toMatchObject({ socket: path })
    daemon.child.kill('SIGTERM')
    expect((await daemon.ended).code).toBe(0)
    expect(existsSync(path)).toBe(true)
  })
})

describe('stopping', () => {
  it('ends jobs with E_ABORTED', async () => {
    const folder = temporaryFolder()
    // one that waits for a hub is there to be cut, whatever the other one is done with by then.
    const hub = await startFakeHub({ repos: [{ id: 'a/b', files: [{ path: 'm-q4_0.gguf', content: gguf(20_000) }] }] })
    onTestFinished(() => hub.close())
    hub.setFaults(({ stage }) => (stage === 'cdn' ? { kind: 'stall', afterBytes: 0 } : undefined))
    const config = join(folder, 'hub.toml')
    writeFileSync(config, `[swarm]\nenabled = false\n[hub]\nendpoint = "${hub.endpoint}"\n`)
    writeFileSync(join(folder, 'big-q4_0.gguf'), seededBytes(1 << 20, 1))
    for (let i = 0; i < 9; i++)
      writeFileSync(join(folder, 'big-q4_0.gguf'), readFileSync(join(folder, 'big-q4_0.gguf')), { flag: 'a' })
    const daemon = await spawnDaemon({
      folder,
      args: ['--root', join(folder, 'root'), '--socket', join(folder, 's.sock'), '--config', config]
    })
    const waiting = daemon.finished((await daemon.post('/v1/import/hf', { repo: 'a/b' })).body)
    const { body } = await daemon.post('/v1/import/local', { paths: [join(folder, 'big-q4_0.gguf')], as: 'a/b' })
    const last = daemon.finished(body)
    daemon.child.kill('SIGTERM')
    expect(await waiting).toMatchObject({ state: 'failed', error: { code: 'E_ABORTED' } })
    const job = await last
    if (job.state === 'failed') expect(job.error!.code).toBe('E_ABORTED')
    expect(await daemon.ended).toEqual({ code: 0, signal: null })
  })

  it('is quick after a second signal, whatever clients do', async () => {
    const folder = temporaryFolder()
    const daemon = await spawnDaemon({ folder })
    await daemon.import([writeFiles(join(folder, 'm'), { 'm-q4_0.gguf': gguf(8 << 20) })], 'a/b')
    const { files } = (await daemon.open('svc:///a/b:q4_0')).body
    const { createConnection } = await import('node:net')
    const stuck = createConnection({ path: daemon.socketPath })
    stuck.on('error', () => undefined)
    stuck.write(`GET /v1/blob/${files[3].digest} HTTP/1.1\r\nHost: x\r\n\r\n`)
    // it has begun to answer: a connection that asked for nothing yet is closed at once
    await once(stuck, 'readable')
    daemon.child.kill('SIGTERM')
    while (!daemon.log.some((entry) => entry.msg === 'stopping')) await new Promise((resolve) => setTimeout(resolve, 5))
    daemon.child.kill('SIGTERM')
    await daemon.ended
    // by the daemon's own clock: to start and to end programs takes a busy machine seconds. A stop that takes more than one is
    // cut, and says no more; one that waits for the client takes three.
    const timeOf = (what: RegExp) =>
      daemon.log.find((entry) => what.test(entry.msg as string))?.time as string | undefined
    const [again, stopped] = [timeOf(/^asked again/), timeOf(/^stopped$/)]
    expect(again).toBeDefined()
    if (stopped !== undefined) expect(Date.parse(stopped) - Date.parse(again!)).toBeLessThan(2_000)
    stuck.destroy()
  })
})

describe('faults', () => {
  it('kill -9 at any moment of an import leaves an intact store with the old or the new state', async () => {
    const folder = temporaryFolder()
    const before = await spawnDaemon({ folder })
    const old = await before.import([writeFiles(join(folder, 'old'), { 'm-q4_0.gguf': gguf(5_000, 1) })], 'a/b')
    const model = writeFiles(join(folder, 'new'), { ...MODEL, 'm-q4_0.gguf': gguf(3_000_000, 2) })
    before.agent.destroy()
    before.child.kill('SIGKILL')
    await before.ended
    let done = 0
    for (const delayMs of [6, 70]) {
      const daemon = await spawnDaemon({ folder })
      const { body } = await daemon.post('/v1/import/local', { paths: [model], as: 'a/b' })
      await new Promise((resolve) => setTimeout(resolve, delayMs))
      done += (await daemon.get(`/v1/jobs/${body.id}`)).body.state === 'done' ? 1 : 0
      daemon.child.kill('SIGKILL')
      await daemon.ended
      daemon.agent.destroy()
      const after = await testDaemon({ folder })
      expect(await after.verify('all')).toMatchObject({ state: 'done', verify: {} })
      const { status, body: resolved } = await after.resolve('svc:///a/b:q4_0')
      expect(status).toBe(200)
      if (done > 0) expect(resolved.manifestDigest).not.toBe(old.manifest)
      expect((await after.open('svc:///a/b:q4_0')).body.missing).toBeUndefined()
      if (delayMs === 70) expect((await after.import([model], 'a/b')).state).toBe('done')
      await after.running.close({ quick: true })
    }
  })

  it.skipIf(!HAS_STRACE)(
    'failing disks fail the job with their error, keep the state, and the daemon continues',
    async () => {
      const folder = temporaryFolder()
      const daemon = await spawnDaemon({ folder })
      await daemon.import([writeFiles(join(folder, 'old'), { 'm-q4_0.gguf': gguf(5_000, 1) })], 'a/b')
      const statePath = join(folder, 'root/state/repos/a/b.json')
      const before = readFileSync(statePath)
      const model = writeFiles(join(folder, 'new'), { 'm-q4_0.gguf': gguf(3_000_000, 2) })
      for (const [what, code, word] of [
        ['fsync,fdatasync:error=EIO', 'E_INTERNAL', 'EIO'],
        ['pwrite64:error=EIO', 'E_INTERNAL', 'EIO'],
        ['pwrite64:error=ENOSPC', 'E_NO_SPACE', '']
      ] as const) {
        const injection = await inject(daemon.child.pid!, what)
        const job = await daemon.import([model], 'a/b')
        await injection.stop()
        expect([what, job.state, job.error?.code]).toEqual([what, 'failed', code])
        expect(job.error!.message).toContain(word)
        expect(readFileSync(statePath)).toEqual(before)
        expect(await daemon.verify('all')).toMatchObject({ state: 'done', verify: {} })
      }
      expect(readdirSync(join(folder, 'root/incoming'))).toEqual([])
      expect((await daemon.import([model], 'a/b')).state).toBe('done')
    }
  )

  it.skipIf(!can('unshare', '-rm', 'true'))(
    'a full disk is E_NO_SPACE before the first byte, or a clean failure in the middle',
    async () => {
      const folder = temporaryFolder()
      const root = join(folder, 'small')
      mkdirSync(root)
      const daemon = await spawnDaemon({
        folder,
        args: ['--root', join(root, 'root'), '--socket', join(folder, 's.sock'), '--config', join(folder, 'off.toml')],
        wrapper: ['unshare', '-rm', 'sh', '-c', `mount -t tmpfs -o size=12m,mode=700 tmpfs ${root} && exec "$@"`, 'sh']
      })
      const small = await daemon.import([writeFiles(join(folder, 'a'), { 'm-q4_0.gguf': gguf(1_000_000, 1) })], 'a/b')
      expect(small.state).toBe('done')
      const large = await daemon.import([writeFiles(join(folder, 'b'), { 'm-q8_0.gguf': gguf(20_000_000, 2) })], 'a/b')
      expect([large.error!.code, large.bytesDone]).toEqual(['E_NO_SPACE', 0])
      // each fits by itself when it is checked, all together do not
      const many = await Promise.all(
        [3, 4, 5].map((seed) =>
          daemon.import([writeFiles(join(folder, `c${seed}`), { [`m-q${seed}_k.gguf`]: gguf(6_500_000, seed) })], 'a/b')
        )
      )
      for (const job of many) if (job.state === 'failed') expect(job.error!.code).toBe('E_NO_SPACE')
      expect(many.some((job) => job.state === 'failed')).toBe(true)
      expect((await daemon.verify('all')).state).toBe('done')
      expect((await daemon.resolve('svc:///a/b:q4_0')).body.manifestDigest).toBe(small.manifest)
    }
  )

  it.skipIf(!can('setpriv', '--bounding-set=-dac_override,-dac_read_search', 'true'))(
    'files that cannot be read fail the import',
    async () => {
      const folder = temporaryFolder()
      const daemon = await spawnDaemon({
        folder,
        wrapper: ['setpriv', '--bounding-set=-dac_override,-dac_read_search']
      })
      const model = writeFiles(join(folder, 'm'), { 'm-q4_0.gguf': gguf(100), 'config.json': '{}', 'closed/x': 'x' })
      chmodSync(join(model, 'config.json'), 0)
      const job = await daemon.import([model], 'a/b')
      expect([job.state, job.error!.code]).toEqual(['failed', 'E_INTERNAL'])
      chmodSync(join(model, 'closed'), 0)
      const { status, body } = await daemon.post('/v1/import/local', { paths: [model], as: 'a/b' })
      expect([status, body.error.code]).toEqual([400, 'E_BAD_REQUEST'])
      chmodSync(join(model, 'closed'), 0o700)
    }
  )
})

describe('svcd tag', () => {
  it('works with and without a running daemon', async () => {
    const folder = temporaryFolder()
    const paths = ['--root', join(folder, 'root'), '--socket', join(folder, 's.sock')]
    const daemon = await testDaemon({ folder })
    const tag = async (...words: string[]): Promise<string> => {
      const lines: string[] = []
      await tagCommand(words, {
        store: { root: daemon.root },
        socketPath: daemon.socketPath,
        print: (line) => void lines.push(line)
      })
      return lines.join('\n')
    }
    const job = await daemon.import([writeFiles(join(folder, 'm'), { 'm-q4_0.gguf': gguf(100) })], 'a/b')
    const index = job.result!.indexDigest!
    expect(await tag('set', 'a/b:v1')).toBe(`a/b:v1 ${index}`)
    expect((await daemon.resolve('svc:///a/b:v1+q4_0')).body.indexDigest).toBe(index)
    await expect(tag('rm', 'a/b:nope')).rejects.toThrow()
    await daemon.running.close({ quick: true })
    await tag('set', 'a/b:v2', index)
    expect(runSvcd(folder, [...paths, 'tag', 'rm', 'a/b:nope']).code).toBe(1)
    expect(runSvcd(folder, [...paths, 'tag', 'ls'])).toMatchObject({
      code: 0,
      out: `a/b:v1 ${index}\na/b:v2 ${index}\n`
    })
  })
})
