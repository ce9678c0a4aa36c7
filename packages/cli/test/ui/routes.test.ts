import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Job } from '@svc/client'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf, makeModelFolder } from '@svc/testkit/models'
import { until } from '@svc/testkit/until'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { laterUndo, type TestDaemon, testDaemon } from '../support.ts'
import { type OpenBridge, openBridge } from './support.ts'

const undo = laterUndo()
let daemon: TestDaemon
beforeAll(async () => {
  daemon = await testDaemon({}, undo.later)
  makeModelFolder(join(daemon.folder, 'Tiny'), { ggufs: { q8_0: 'Q8_0', q4_0: 'Q4_0' } })
  await daemon.svc('import', 'local', 'Tiny', '--as', 'acme/tiny')
})
afterAll(undo.all)

/** The answer of a request that succeeds. */
async function of(page: OpenBridge, line: string, body?: unknown) {
  const [method = '', path = ''] = line.split(' ')
  const answer = await page.fetch(path, { method, ...(body !== undefined && { body }) })
  expect({ line, status: answer.status, body: answer.body }).toMatchObject({ line, status: 200 })
  return JSON.parse(answer.body)
}

/** The last snapshot of the job that a request starts. */
async function done(page: OpenBridge, line: string, body: unknown) {
  return page.session.client.waitJob((await of(page, line, body)).id)
}

describe('routes of the daemon', () => {
  it('pass what the daemon says', async () => {
    const page = await openBridge(daemon.socketPath)
    const { client } = page.session
    expect(await of(page, 'GET v1/models')).toEqual(await client.models())
    expect(await of(page, 'GET v1/why?ref=acme/tiny:q8_0')).toEqual(await client.why('acme/tiny:q8_0'))
    expect(await of(page, 'GET v1/why?ref=svc:///acme/tiny:q8_0')).toEqual(await client.why('acme/tiny:q8_0'))
    const [{ id }] = (await client.jobs()) as [Job]
    expect(await of(page, `GET v1/jobs/${id}`)).toEqual(await client.job(id))
    // the page cannot use other routes
    expect((await page.fetch('v1/open?ref=acme/tiny:q8_0')).status).toBe(404)
  })

  it('import, keep private, verify, and remove', async () => {
    const page = await openBridge(daemon.socketPath)
    const file = join(daemon.folder, 'other-q8_0.gguf')
    writeFileSync(file, makeGguf({ seed: 7 }))
    const imported = await done(page, 'POST v1/import/local', { paths: [file], as: 'acme/other', private: true })
    expect(imported.result?.quants).toEqual(['q8_0'])
    expect(await of(page, 'PUT v1/private', { ref: 'acme/other:q8_0', private: false })).toMatchObject({
      private: false
    })
    expect(await done(page, 'POST v1/verify', { target: 'acme/other:q8_0' })).toMatchObject({ state: 'done' })
    expect(await done(page, 'POST v1/verify', { target: 'all' })).toMatchObject({ state: 'done' })
    expect(await of(page, 'PUT v1/pin', { ref: 'acme/other:q8_0', pinned: true })).toMatchObject({ pinned: true })
    expect(await done(page, 'POST v1/evict', { ref: 'acme/other:q8_0', force: true })).toMatchObject({
      state: 'failed'
    })
    expect(await of(page, 'PUT v1/pin', { ref: 'acme/other:q8_0', pinned: false })).toMatchObject({ pinned: false })
    // a managed view keeps nothing
    const { path } = await of(page, 'POST bridge/path', { ref: 'acme/other:q8_0' })
    expect(readFileSync(path)).toEqual(readFileSync(file))
    const told = await of(page, 'GET bridge/removal?ref=acme/other')
    const removed = await of(page, 'DELETE v1/models/acme/other')
    expect(told).toMatchObject({ quants: ['acme/other:q8_0'], sharedBytes: 0 })
    // but for the list of its quants
    expect(removed.freeableBytes - told.freeableBytes).toBeLessThan(1024)
    expect(told.freeableBytes).toBeGreaterThan(1_000_000)
    expect(existsSync(path)).toBe(false)
    const dry = await done(page, 'POST v1/gc', { dryRun: true, graceSeconds: 0 })
    const wet = await done(page, 'POST v1/gc', { graceSeconds: 0 })
    expect(wet.result).toEqual(dry.result)
    const { namespaces } = await page.session.client.models()
    expect(namespaces.map(({ name }) => name)).not.toContain('other')
  })

  it('pass errors with the advice of the command line', async () => {
    const page = await openBridge(daemon.socketPath)
    const unknown = await page.fetch('v1/why?ref=acme/absent:q8_0')
    expect({ status: unknown.status, ...JSON.parse(unknown.body) }).toEqual({
      status: 404,
      error: {
        code: 'E_UNKNOWN_REF',
        message: expect.any(String),
        hint: expect.stringContaining('svc ls'),
        candidates: expect.any(Array)
      }
    })
    const statusOf = async (path: string, body?: unknown): Promise<number> =>
      (await page.fetch(path, body === undefined ? {} : { method: 'POST', body })).status
    expect(await statusOf('v1/why?ref=%20')).toBe(400)
    expect(await statusOf('v1/why')).toBe(400)
    expect(await statusOf('v1/jobs/%ff')).toBe(400)
    expect(await statusOf('v1/jobs/absent')).toBe(404)
    expect(await statusOf('v1/import/local', { paths: 'x' })).toBe(400)
    expect(await statusOf('v1/import/hf', { repo: { toString: 1 } })).toBe(400)
    expect(await statusOf('v1/ensure', {})).toBe(400)
    expect(await statusOf('bridge/path', { ref: 'x'.repeat(10_000) })).toBe(400)
    expect(await statusOf('bridge/path', { ref: ['acme/tiny:q8_0'] })).toBe(400)
    await daemon.pause()
    const away = await page.fetch('v1/models')
    expect({ status: away.status, code: JSON.parse(away.body).error.code }).toEqual({
      status: 503,
      code: 'E_UNREACHABLE'
    })
    await daemon.resume()
    expect(await statusOf('v1/models')).toBe(200)
  })
})

describe('routes of the bridge', () => {
  it('count each blob on disk once', async () => {
    const page = await openBridge(daemon.socketPath)
    // the same weights under another name, and something that nothing needs
    await daemon.svc('import', 'local', 'Tiny/tiny-q8_0.gguf', '--as', 'acme/again')
    writeFileSync(join(daemon.folder, 'gone-q8_0.gguf'), makeGguf({ seed: 9 }))
    await daemon.svc('import', 'local', 'gone-q8_0.gguf', '--as', 'acme/gone')
    await of(page, 'DELETE v1/models/acme/gone/q8_0')
    const use = await of(page, 'GET bridge/disk')
    const alone = use.models.reduce((sum: number, { aloneBytes }: { aloneBytes: number }) => sum + aloneBytes, 0)
    expect(alone + use.sharedBytes + use.keptBytes + use.freeableBytes).toBe(use.storeBytes)
    expect(use.models.map(({ ref }: { ref: string }) => ref)).toEqual([
      'acme/again:q8_0',
      'acme/tiny:bf16',
      'acme/tiny:q4_0',
      'acme/tiny:q8_0'
    ])
    for (const part of [alone, use.sharedBytes, use.freeableBytes]) expect(part).toBeGreaterThan(0)
    expect(use.storeBytes).toBe((await page.session.client.status()).store.bytes)
  })

  it('do not count evicted bytes', async () => {
    const page = await openBridge(daemon.socketPath)
    writeFileSync(join(daemon.folder, 'left-q8_0.gguf'), makeGguf({ seed: 10 }))
    await daemon.svc('import', 'local', 'left-q8_0.gguf', '--as', 'acme/left')
    const evicted = await done(page, 'POST v1/evict', { ref: 'acme/left:q8_0', force: true })
    expect(evicted.result?.bytes).toBeGreaterThan(1_000_000)
    const { models } = await of(page, 'GET bridge/disk')
    expect(models.find(({ ref }: { ref: string }) => ref === 'acme/left:q8_0').bytes).toBeLessThan(10_000)
    await of(page, 'DELETE v1/models/acme/left/q8_0')
  })

  it('run doctor', async () => {
    const page = await openBridge(daemon.socketPath)
    const { ok, findings } = await of(page, 'GET bridge/doctor')
    expect(ok).toBe(true)
    expect(findings.map(({ check }: { check: string }) => check)).toEqual(
      expect.arrayContaining(['daemon', 'store', 'space'])
    )
  })

  it('say what to type, for each format', async () => {
    const page = await openBridge(daemon.socketPath)
    const runtimes = async (ref: string): Promise<Record<string, string>> => {
      const { commands } = await of(page, `GET bridge/commands?ref=${ref}`)
      return Object.fromEntries(
        commands.map((each: { runtime: string; command: string }) => [each.runtime, each.command])
      )
    }
    expect(await runtimes('acme/tiny:q8_0')).toEqual({
      'llama.cpp': 'llama-server -m "$(svc path acme/tiny:q8_0)"',
      Ollama: 'echo "FROM $(svc path acme/tiny:q8_0)" > Modelfile && ollama create tiny -f Modelfile'
    })
    expect(Object.keys(await runtimes('acme/tiny:bf16'))).toEqual(['vLLM', 'transformers'])
    const folder = join(daemon.folder, 'Vision')
    mkdirSync(folder)
    for (const [seed, name] of ['vision-q8_0.gguf', 'mmproj-f16.gguf', 'mtp-vision-q8_0.gguf'].entries())
      writeFileSync(join(folder, name), makeGguf({ seed: 20 + seed }))
    await done(page, 'POST v1/import/local', { paths: [folder], as: 'acme/vision', names: 'normalized' })
    expect((await runtimes('acme/vision:q8_0'))['llama.cpp']).toBe(
      `llama-server -m "$(svc path acme/vision:q8_0)" --mmproj "$(svc path 'acme/vision:q8_0#mmproj')" ` +
        `--model-draft "$(svc path 'acme/vision:q8_0#draft')"`
    )
    await of(page, 'DELETE v1/models/acme/vision')
  })

  it('plan an import, and say what fits this machine', async () => {
    const hub = await startFakeHub()
    onTestFinished(() => hub.close())
    hub.commit({ id: 'Acme/Tiny-GGUF', files: [{ path: 'tiny-q8_0.gguf', content: makeGguf({ seed: 1 }) }] })
    const { socketPath } = await testDaemon({
      fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } }
    })
    const page = await openBridge(socketPath)
    const plan = await of(page, 'POST bridge/plan', { source: 'Acme/Tiny-GGUF:Q8_0' })
    expect(plan).toMatchObject({
      repo: 'Acme/Tiny-GGUF',
      quants: ['q8_0'],
      source: { repo: 'Acme/Tiny-GGUF', quants: ['Q8_0'] },
      fits: [{ quant: 'q8_0', fit: 'fits' }]
    })
    const body = { repo: plan.repo, revision: plan.commit, quants: plan.quants, names: 'normalized', aux: ['one'] }
    expect(await done(page, 'POST v1/import/hf', body)).toMatchObject({ state: 'done', as: 'acme/tiny-gguf' })
    expect((await page.fetch('bridge/plan', { method: 'POST', body: { source: 'no such thing' } })).status).toBe(400)
  })

  it('have the desktop open folders that the daemon names, and nothing else', async () => {
    const said = join(daemon.folder, 'opened')
    mkdirSync(join(daemon.folder, 'bin'))
    const program = join(daemon.folder, 'bin/xdg-open')
    writeFileSync(program, `#!/bin/sh\nprintf '%s\\n' "$#" "$@" > ${said}.part && /bin/mv ${said}.part ${said}\n`)
    chmodSync(program, 0o755)
    const desktop = { DISPLAY: ':7', PATH: join(daemon.folder, 'bin') }
    const page = await openBridge(daemon.socketPath, { env: desktop })
    for (const ref of ['/etc', '--help', 'file:///etc', '../../etc', `${daemon.folder}`])
      expect(
        (await page.fetch('bridge/open-folder', { method: 'POST', body: { ref, folder: '/etc', path: '/etc' } })).status
      ).not.toBe(200)
    expect(existsSync(said)).toBe(false)
    const { folder, opened } = await of(page, 'POST bridge/open-folder', { ref: 'acme/tiny:q8_0', folder: '/etc' })
    expect({ opened, isOurs: folder.startsWith(daemon.root) }).toEqual({ opened: true, isOurs: true })
    await until(() => existsSync(said))
    expect(readFileSync(said, 'utf8')).toBe(`1\n${folder}\n`)
    for (const env of [
      { PATH: desktop.PATH },
      { ...desktop, SSH_CONNECTION: '10.0.0.1 2 10.0.0.2 22' },
      { DISPLAY: ':7' }
    ]) {
      const other = await openBridge(daemon.socketPath, { env })
      expect(await of(other, 'POST bridge/open-folder', { ref: 'acme/tiny:q8_0' })).toEqual({ folder, opened: false })
    }
  })

  it('recognize a pasted text', async () => {
    const page = await openBridge(daemon.socketPath)
    const [pin, infohash] = [`sha256:${'a'.repeat(64)}`, `btmh:1220${'b'.repeat(64)}`]
    const magnet = 'magnet:?xt=urn:btmh:1220ab&dn=x'
    const kinds: readonly (readonly [string, unknown])[] = [
      ['Qwen/Qwen3-0.6B-GGUF', { kind: 'hf', repo: 'Qwen/Qwen3-0.6B-GGUF' }],
      [' Qwen/Qwen3-0.6B-GGUF:Q8_0,Q4_K_M ', { kind: 'hf', repo: 'Qwen/Qwen3-0.6B-GGUF', quants: ['Q8_0', 'Q4_K_M'] }],
      ['https://huggingface.co/a/b/tree/dev', { kind: 'hf', repo: 'a/b', revision: 'dev' }],
      ['hf.co/a/b:q8_0', { kind: 'hf', repo: 'a/b', quants: ['q8_0'] }],
      [magnet, { kind: 'bt', magnet }],
      [
        `svc import bt '${magnet}' --pin ${pin} --companions ${pin}@${infohash}`,
        { kind: 'bt', magnet, manifestDigest: pin, companions: { digest: pin, infohash } }
      ],
      [
        `svc import bt '${magnet}--as=b/c' --pin=${pin} --webseed 'https://a.example/' --peer 10.0.0.1:1 --peer 10.0.0.2:1 --as acme/m --private`,
        {
          kind: 'bt',
          magnet: `${magnet}--as=b/c`,
          manifestDigest: pin,
          webseeds: ['https://a.example/'],
          peers: ['10.0.0.1:1', '10.0.0.2:1'],
          as: 'acme/m',
          private: true
        }
      ],
      [daemon.folder, { kind: 'local', path: daemon.folder, isFolder: true }],
      [`${daemon.folder}/absent`, { kind: 'absent', path: `${daemon.folder}/absent`, above: daemon.folder }],
      ['models/absent-q8_0.gguf', { kind: 'absent', path: 'models/absent-q8_0.gguf' }],
      [`file://${daemon.folder}`, { kind: 'local', path: daemon.folder, isFolder: true }],
      ['registry.example/team/model:q4_k_m', { kind: 'oci', image: 'registry.example/team/model:q4_k_m' }],
      ['localhost:5000/m:1', { kind: 'oci', image: 'localhost:5000/m:1' }],
      [`oci://ghcr.io/a/b@${pin}`, { kind: 'oci', image: `ghcr.io/a/b@${pin}` }],
      ['three words here', { kind: 'unknown' }],
      ['', { kind: 'unknown' }]
    ]
    for (const [text, kind] of kinds)
      expect({ text, kind: await of(page, 'POST bridge/source', { text }) }).toEqual({ text, kind })
  })
})
