import { mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { makeModelFolder } from '@svc/testkit/models'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { laterUndo, svc, type TestDaemon, testDaemon } from './support.ts'

const undo = laterUndo()
let daemon: TestDaemon
const run = (...args: string[]) => daemon.svc(...args)

beforeAll(async () => {
  daemon = await testDaemon({}, undo.later)
  makeModelFolder(join(daemon.folder, 'Tiny'), { ggufs: { q8_0: 'Q8_0', q4_k_m: 'Q4_K', q4_0: 'Q4_0' } })
  expect(await run('import', 'local', 'Tiny', '--as', 'acme/tiny')).toMatchObject({
    code: 0,
    stdout: 'acme/tiny:bf16\nacme/tiny:q4_0\nacme/tiny:q4_k_m\nacme/tiny:q8_0\n'
  })
}, 60_000)
afterAll(undo.all)

describe('svc, against the real daemon', () => {
  it('lists', async () => {
    const [plain, json, quiet, none] = await Promise.all([
      run('ls'),
      run('ls', '--json'),
      run('ls', '-q'),
      run('ls', 'nothing')
    ])
    expect(plain.stdout).toMatch(/^MODEL +SIZE +STATE +SHARED +IMPORTED +USED\n/)
    const refs = plain.stdout.split('\n').slice(1, -1)
    expect(refs.map((line) => line.split(' ', 1)[0])).toEqual(
      ['bf16', 'q4_0', 'q4_k_m', 'q8_0'].map((quant) => `acme/tiny:${quant}`)
    )
    for (const line of refs) expect(line).toMatch(/ (KiB|MiB) +complete +no +just now/)
    const document = JSON.parse(json.stdout)
    expect(document.models[0]).toEqual({
      ref: 'acme/tiny:bf16',
      quant: 'bf16',
      manifest: expect.stringMatching(/^sha256:/),
      sizeBytes: expect.any(Number),
      complete: true,
      private: false,
      shared: false,
      companions: expect.stringMatching(/^sha256:/),
      importedAt: expect.any(String),
      origin: { kind: 'local' },
      tags: []
    })
    expect(document.damaged).toEqual([])
    expect((await run('ls', '--format', 'json')).stdout).toBe(json.stdout)
    expect(quiet.stdout.split('\n')[0]).toBe('acme/tiny:bf16')
    expect(none).toMatchObject({ code: 0, stdout: '' })
  })

  it.each([20, 40, 60, 80, 120])('lists on %i columns, and cuts no name', async (columns) => {
    const long = `some-organization/${'a-model-with-a-very-long-name-'.repeat(3)}gguf`
    await run('import', 'local', 'Tiny/tiny-q8_0.gguf', '--as', long, '--private')
    const ls = await daemon.svcWith(['ls'], { stdoutColumns: columns })
    const lines = ls.stdout.trimEnd().split('\n')
    for (const quant of ['bf16', 'q4_0', 'q4_k_m', 'q8_0'])
      expect(lines.filter((line) => line.split(' ').includes(`acme/tiny:${quant}`))).toHaveLength(1)
    expect(lines.map((line) => line.trim())).toContain(`${long}:q8_0`)
    for (const line of lines) expect(line.length <= columns || !line.trim().includes(' '), line).toBe(true)
    if (columns >= 60) expect(lines[1]).toMatch(/^acme\/tiny:bf16 +\d.*iB {2}complete/)
    // what is not a terminal gets everything on one line
    expect((await run('ls')).stdout).toMatch(new RegExp(`^${long}:q8_0 .*complete`, 'm'))
    await run('rm', long)
  })

  it('shows, resolves and gives the path of the weights, by prefix too', async () => {
    const [show, repo, path, resolved, both] = await Promise.all([
      run('show', 'acme/tiny:q8', '--json'),
      run('show', 'Acme/Tiny'),
      run('path', 'svc:///acme/tiny:q8_0'),
      run('resolve', 'acme/tiny:q8_0', '--json'),
      run('path', 'acme/tiny:bf16', '--json')
    ])
    const shown = JSON.parse(show.stdout)
    expect(shown.annotations['svc.license']).toBe('MIT')
    expect(shown.manifestDigest).toBe(JSON.parse(resolved.stdout).manifestDigest)
    expect(repo.stdout).toMatch(/^acme\/tiny:q4_k_m +\d.* complete$/m)
    const file = path.stdout.trim()
    expect(readFileSync(file).equals(readFileSync(join(daemon.folder, 'Tiny/tiny-q8_0.gguf')))).toBe(true)
    expect(JSON.parse(both.stdout)[0]).toMatchObject({ name: 'model.safetensors', kind: 'weights.safetensors' })
  })

  it('prints bytes: whole, ranges, by name, by digest', async () => {
    const whole = readFileSync(join(daemon.folder, 'Tiny/tiny-q8_0.gguf')).toString('latin1')
    const [all, first, last, tail, named, manifest] = await Promise.all([
      run('cat', 'acme/tiny:q8_0'),
      run('cat', 'acme/tiny:q8_0', '--range', '0-3'),
      run('cat', 'acme/tiny:q8_0', '--range', '-5'),
      run('cat', 'acme/tiny:q8_0', '--range', `${whole.length - 7}-`),
      run('cat', 'acme/tiny:q8_0#chat_template.jinja'),
      run('cat', 'acme/tiny:q8_0#manifest')
    ])
    expect(all.stdout === whole).toBe(true)
    expect(first.stdout).toBe('GGUF')
    expect(last.stdout).toBe(whole.slice(-5))
    expect(tail.stdout).toBe(whole.slice(-7))
    expect(named.stdout).toBe(readFileSync(join(daemon.folder, 'Tiny/chat_template.jinja'), 'latin1'))
    const { files } = JSON.parse(manifest.stdout) as { files: { digest: string; name: string }[] }
    const digest = files.find(({ name }) => name === 'chat_template.jinja')!.digest
    expect((await run('cat', digest)).stdout).toBe(named.stdout)
  })

  it('pull of a complete model, verify and jobs work', async () => {
    const [pull, verify, one] = await Promise.all([
      run('pull', 'acme/tiny:bf16', '--json'),
      run('verify', '--json', '--quiet'),
      run('verify', 'acme/tiny:bf16')
    ])
    expect(JSON.parse(pull.stdout.trim().split('\n').at(-1)!)).toMatchObject({ kind: 'ensure', state: 'done' })
    expect(JSON.parse(verify.stdout)).toMatchObject({ target: 'all', state: 'done', verify: {} })
    expect(one.code).toBe(0)
    const { jobs } = JSON.parse((await run('jobs', '--json')).stdout)
    const [job, followed] = await Promise.all([
      run('jobs', jobs[0].id, '--json'),
      run('jobs', jobs[0].id, '--follow', '--json')
    ])
    expect(JSON.parse(job.stdout)).toEqual(jobs[0])
    expect(JSON.parse(followed.stdout)).toEqual(jobs[0])
  })

  it('status shows the daemon', async () => {
    const [status, swarm] = await Promise.all([run('status', '--json'), run('swarm', '--json')])
    expect(JSON.parse(status.stdout)).toMatchObject({ root: join(daemon.folder, 'root'), jobs: { failed: 0 } })
    expect(JSON.parse(swarm.stdout)).toHaveProperty('enabled')
  })

  it.each([
    [['resolve', 'acme/tiny:q9'], 3, 'E_NO_MEMBER'],
    [['resolve', 'acme/tiny:q4'], 2, 'E_AMBIGUOUS_SELECTOR'],
    [['resolve', 'acme/none:q8_0'], 3, 'E_UNKNOWN_REF'],
    [['resolve', 'acme/tiny'], 2, 'E_PARSE'],
    [['resolve', `acme/tiny:q8_0@sha256:${'0'.repeat(64)}`], 5, 'E_PIN_MISMATCH'],
    [['show', 'acme/none'], 3, 'E_UNKNOWN_REF'],
    [['cat', 'acme/tiny:q8_0#none'], 3, 'E_NOT_FOUND'],
    [['cat', 'acme/tiny:q8_0', '--range', '99999999-'], 2, 'E_RANGE_INVALID'],
    [['cat', 'acme/tiny:q8_0', '--range', 'x'], 2, 'E_USAGE'],
    [['cat', '0'.repeat(64)], 3, 'E_NOT_FOUND'],
    [['jobs', 'abc'], 3, 'E_NOT_FOUND'],
    [['cancel', 'abc'], 3, 'E_NOT_FOUND'],
    [['ls', '--filter', 'constructor'], 2, 'E_USAGE'],
    [['ls', '--filter', 'size>1constructor'], 2, 'E_USAGE'],
    [['import', 'local', 'Tiny'], 2, 'E_USAGE'],
    [['import', 'local', 'Absent', '--as', 'a/b'], 2, 'E_BAD_REQUEST'],
    [['import', 'bt', 'btmh:1220'], 2, 'E_USAGE']
  ])('svc %j exits %d with %s', async (args, code, errorCode) => {
    const ran = await run(...args, '--json')
    expect(ran).toMatchObject({ code, stdout: '' })
    expect(JSON.parse(ran.stderr).error.code).toBe(errorCode)
  })

  it('a wrong selector lists the alternatives as they would be typed', async () => {
    const { error } = JSON.parse((await run('path', 'acme/tiny', '--json')).stderr)
    expect(error.candidates).toEqual(['acme/tiny:bf16', 'acme/tiny:q4_0', 'acme/tiny:q4_k_m', 'acme/tiny:q8_0'])
  })

  it('an import without weights fails like any job', async () => {
    mkdirSync(join(daemon.folder, 'docs'))
    makeModelFolder(join(daemon.folder, 'docs'), { ggufs: {}, files: { 'model.safetensors': undefined } })
    const ran = await run('import', 'local', 'docs', '--as', 'acme/docs')
    expect(ran).toMatchObject({ code: 1, stdout: '' })
    expect(ran.stderr).toMatch(/^svc: /m)
    expect(ran.stderr).not.toMatch(/^\s+at /m)
    expect(ran.stderr).not.toContain('\u001b')
  })

  it('a detached import prints its job', async () => {
    const ran = await run('import', 'local', 'Tiny', '--as', 'acme/again', '--detach')
    expect(ran.code).toBe(0)
    const followed = await run('jobs', ran.stdout.trim(), '--follow', '--json', '--quiet')
    expect(JSON.parse(followed.stdout)).toMatchObject({ kind: 'import-local', as: 'acme/again', state: 'done' })
    expect(statSync(daemon.socketPath).mode & 0o777).toBe(0o600)
  })
})

describe('svc, without a daemon', () => {
  const alone = (...args: string[]) => svc(args, { socketPath: join(daemon.folder, 'none.sock') })

  it('says so', async () => {
    const ran = await alone('ls', '--json')
    expect(ran).toMatchObject({ code: 4, stdout: '' })
    expect(JSON.parse(ran.stderr).error.code).toBe('E_UNREACHABLE')
  })

  it('prints help, and refuses unknown commands', async () => {
    const [help, version, unknown, option, nothing] = await Promise.all([
      alone('--help'),
      alone('--version'),
      alone('sl'),
      alone('ls', '--colour'),
      alone()
    ])
    expect(help).toMatchObject({ code: 0, stderr: '' })
    expect(help.stdout).toContain('Exit codes:')
    expect(version.stdout).toBe('svc 1.2.3\n')
    for (const ran of [unknown, option]) {
      expect(ran.code).toBe(2)
      expect(ran.stderr).toMatch(/^svc: /)
    }
    expect(nothing.code).toBe(2)
  })
})
