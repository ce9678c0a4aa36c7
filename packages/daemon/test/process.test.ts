import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { temporaryFolder } from './support/daemon.ts'
import { gguf, MODEL, seededBytes, writeFiles } from './support/models.ts'
import { runSvcd, spawnDaemon } from './support/process.ts'

const can = (command: string, ...args: string[]): boolean => spawnSync(command, args).status === 0
const mode = (path: string): number => statSync(path).mode & 0o777

// each start of a process loads the whole daemon
vi.setConfig({ testTimeout: 120_000 })

describe('starting', () => {
  it('makes socket, folder and files that only the owner can use, and writes runtime.json', async () => {
    const folder = temporaryFolder()
    const daemon = await spawnDaemon({ folder, args: ['--root', join(folder, 'root'), '--config', join(folder, 'off.toml')] })
    const base = join(folder, `svc-${process.geteuid!()}`)
    expect([mode(base), mode(join(base, 'svc.sock')), mode(join(base, 'runtime.json')), mode(join(folder, 'root'))]).toEqual([0o700, 0o600, 0o600, 0o700])
    const runtime = JSON.parse(readFileSync(join(base, 'runtime.json'), 'utf8'))
    expect(runtime).toMatchObject({ pid: daemon.child.pid, root: join(folder, 'root'), socket: join(base, 'svc.sock') })
    daemon.child.kill('SIGTERM')
    expect(await daemon.ended).toEqual({ code: 0, signal: null })
    expect([existsSync(join(base, 'svc.sock')), existsSync(join(base, 'runtime.json'))]).toEqual([false, false])
  })

  it('says its version and what it takes', () => {
    const folder = temporaryFolder()
    expect(runSvcd(folder, ['--version'])).toMatchObject({ code: 0, err: '' })
    expect(runSvcd(folder, ['--help']).out).toContain('svcd tag set')
    for (const args of [['--nonsense'], ['nonsense'], ['--root', ''], ['--log-level', 'loud']]) {
      const { code, err } = runSvcd(folder, args)
      expect([args, code]).toEqual([args, 2])
      expect(err).toMatch(/^svcd: /)
    }
  })

  it('stops over a bad configuration, naming file, key and the known keys', () => {
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
    const sameRoot = runSvcd(folder, ['--root', join(folder, 'root'), '--socket', join(folder, 'other.sock')])
    expect([sameRoot.code, sameRoot.err.includes(String(daemon.child.pid))]).toEqual([2, true])
    const sameSocket = runSvcd(folder, ['--root', join(folder, 'other'), '--socket', join(folder, 's.sock')])
    expect([sameSocket.code, existsSync(join(folder, 'other'))]).toEqual([2, false])
    expect((await daemon.get('/v1/jobs')).status).toBe(200)
    daemon.child.kill('SIGKILL')
    await daemon.ended
    expect(existsSync(join(folder, 's.sock'))).toBe(true)
    const next = await spawnDaemon({ folder })
    expect((await next.get('/v1/jobs')).status).toBe(200)
    expect(mode(join(folder, 's.sock'))).toBe(0o600)
  })

  it('leaves alone what is no socket, a foreign folder, a linked folder and a long path', () => {
    const folder = temporaryFolder()
    const root = join(folder, 'root')
    writeFileSync(join(folder, 'file'), 'precious')
    expect(runSvcd(folder, ['--root', root, '--socket', join(folder, 'file')]).code).toBe(2)
    expect(readFileSync(join(folder, 'file'), 'utf8')).toBe('precious')
    mkdirSync(join(folder, 'real'))
    mkdirSync(join(folder, 'run'))
    symlinkSync(join(folder, 'real'), join(folder, 'run', `svc-${process.geteuid!()}`))
    expect(runSvcd(folder, ['--root', root], { XDG_RUNTIME_DIR: join(folder, 'run') }).code).toBe(2)
    expect(runSvcd(folder, ['--root', root, '--socket', `${folder}/${'x'.repeat(108 - folder.length - 1)}`]).code).toBe(2)
    expect(existsSync(root)).toBe(false)
  })

  it('takes a socket path of 107 bytes, and closes a folder of its own that is too open', async () => {
    const folder = temporaryFolder()
    const path = `${folder}/${'x'.repeat(107 - folder.length - 1)}`
    const daemon = await spawnDaemon({ folder, args: ['--root', join(folder, 'root'), '--socket', path, '--config', join(folder, 'off.toml')] })
    expect(mode(path)).toBe(0o600)
    daemon.child.kill('SIGTERM')
    await daemon.ended
    const own = join(folder, `svc-${process.geteuid!()}`)
    mkdirSync(own)
    chmodSync(own, 0o777)
    await spawnDaemon({ folder, args: ['--root', join(folder, 'root'), '--config', join(folder, 'off.toml')] })
    expect(mode(own)).toBe(0o700)
  })

  it('takes a socket from a service manager, and leaves its file', async () => {
    const folder = temporaryFolder()
    const path = join(folder, 's.sock')
    const server = createServer()
    await new Promise<void>(resolve => server.listen(path, resolve))
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
  it('cuts jobs, which say so', async () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'big-q4_0.gguf'), seededBytes(1 << 20, 1))
    for (let i = 0; i < 9; i++) writeFileSync(join(folder, 'big-q4_0.gguf'), readFileSync(join(folder, 'big-q4_0.gguf')), { flag: 'a' })
    const daemon = await spawnDaemon({ folder })
    const { body } = await daemon.post('/v1/import/local', { paths: [join(folder, 'big-q4_0.gguf')], as: 'a/b' })
    const last = daemon.finished(body)
    daemon.child.kill('SIGTERM')
    const job = await last
    if (job.state === 'failed') expect(job.error!.error.code).toBe('E_ABORTED')
    expect(await daemon.ended).toEqual({ code: 0, signal: null })
  })

  it('is quick when asked twice, whatever clients do', async () => {
    const folder = temporaryFolder()
    const daemon = await spawnDaemon({ folder })
    await daemon.import([writeFiles(join(folder, 'm'), { 'm-q4_0.gguf': gguf(8 << 20) })], 'a/b')
    const { files } = (await daemon.open('svc:///a/b:q4_0')).body
    const { createConnection } = await import('node:net')
    const stuck = createConnection({ path: daemon.socketPath })
    stuck.on('error', () => undefined)
    stuck.pause()
    stuck.write(`GET /v1/blob/${files[3].digest} HTTP/1.1\r\nHost: x\r\n\r\n`)
    await daemon.get('/v1/jobs')
    const begun = performance.now()
    daemon.child.kill('SIGTERM')
    while (!daemon.log.some(entry => entry['msg'] === 'stopping')) await new Promise(resolve => setTimeout(resolve, 5))
    daemon.child.kill('SIGTERM')
    await daemon.ended
    expect(performance.now() - begun).toBeLessThan(2_900)
    stuck.destroy()
  })
})

describe('faults', () => {
  it('kill -9 at any moment of an import leaves a whole store and the old or the new state', async () => {
    const folder = temporaryFolder()
    const before = await spawnDaemon({ folder })
    const old = await before.import([writeFiles(join(folder, 'old'), { 'm-q4_0.gguf': gguf(5_000, 1) })], 'a/b')
    const model = writeFiles(join(folder, 'new'), { ...MODEL, 'm-q4_0.gguf': gguf(3_000_000, 2) })
    let daemon = before
    let done = 0
    for (let round = 0; round < 4; round++) {
      const { body } = await daemon.post('/v1/import/local', { paths: [model], as: 'a/b' })
      const moment = new Promise(resolve => setTimeout(resolve, [0, 6, 25, 70][round]))
      await moment
      done += (await daemon.get(`/v1/jobs/${body.id}`)).body.state === 'done' ? 1 : 0
      daemon.child.kill('SIGKILL')
      await daemon.ended
      daemon.agent.destroy()
      daemon = await spawnDaemon({ folder })
      expect(await daemon.verify('all')).toMatchObject({ state: 'done', verify: {} })
      const { status, body: resolved } = await daemon.resolve('svc:///a/b:q4_0')
      expect(status).toBe(200)
      if (done > 0) expect(resolved.manifestDigest).not.toBe(old.manifest)
      expect((await daemon.open('svc:///a/b:q4_0')).body.missing).toBeUndefined()
    }
    expect((await daemon.import([model], 'a/b')).state).toBe('done')
  })

  it.skipIf(!can('unshare', '-rm', 'true'))('a full disk is E_NO_SPACE before the first byte, or a clean failure in the middle', async () => {
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
    expect([large.error!.error.code, large.bytesDone]).toEqual(['E_NO_SPACE', 0])
    // each fits by itself when it is checked, all together do not
    const many = await Promise.all(
      [3, 4, 5].map(seed => daemon.import([writeFiles(join(folder, `c${seed}`), { [`m-q${seed}_k.gguf`]: gguf(6_500_000, seed) })], 'a/b'))
    )
    for (const job of many) if (job.state === 'failed') expect(job.error!.error.code).toBe('E_NO_SPACE')
    expect(many.some(job => job.state === 'failed')).toBe(true)
    expect((await daemon.verify('all')).state).toBe('done')
    expect((await daemon.resolve('svc:///a/b:q4_0')).body.manifestDigest).toBe(small.manifest)
  })

  it.skipIf(!can('setpriv', '--bounding-set=-dac_override,-dac_read_search', 'true'))('files that cannot be read fail the import', async () => {
    const folder = temporaryFolder()
    const daemon = await spawnDaemon({ folder, wrapper: ['setpriv', '--bounding-set=-dac_override,-dac_read_search'] })
    const model = writeFiles(join(folder, 'm'), { 'm-q4_0.gguf': gguf(100), 'config.json': '{}', 'closed/x': 'x' })
    chmodSync(join(model, 'config.json'), 0)
    const job = await daemon.import([model], 'a/b')
    expect([job.state, job.error!.error.code]).toEqual(['failed', 'E_INTERNAL'])
    chmodSync(join(model, 'closed'), 0)
    const { status, body } = await daemon.post('/v1/import/local', { paths: [model], as: 'a/b' })
    expect([status, body.error.code]).toEqual([400, 'E_BAD_REQUEST'])
    chmodSync(join(model, 'closed'), 0o700)
  })
})

describe('svcd tag', () => {
  it('works with and without a running daemon', async () => {
    const folder = temporaryFolder()
    const args = ['--root', join(folder, 'root'), '--socket', join(folder, 's.sock'), 'tag']
    const daemon = await spawnDaemon({ folder })
    const job = await daemon.import([writeFiles(join(folder, 'm'), { 'm-q4_0.gguf': gguf(100) })], 'a/b')
    const index = job.result!.indexDigest!
    expect(runSvcd(folder, [...args, 'set', 'a/b:v1'])).toMatchObject({ code: 0, out: `a/b:v1 ${index}\n` })
    expect((await daemon.resolve('svc:///a/b:v1+q4_0')).body.indexDigest).toBe(index)
    expect(runSvcd(folder, [...args, 'rm', 'a/b:nope']).code).toBe(1)
    daemon.child.kill('SIGTERM')
    await daemon.ended
    expect(runSvcd(folder, [...args, 'set', 'a/b:v2', index]).code).toBe(0)
    expect(runSvcd(folder, [...args, 'ls']).out).toBe(`a/b:v1 ${index}\na/b:v2 ${index}\n`)
  })
})
