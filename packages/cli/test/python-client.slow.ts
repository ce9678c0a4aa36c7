// The Python client, from its sources and as a wheel in a clean environment, against the daemon.
import { execFile, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf, makeModelFolder } from '@svc/testkit/models'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { laterUndo, type TestDaemon, testDaemon } from './support.ts'

const undo = laterUndo()
afterAll(undo.all)

const SOURCE = fileURLToPath(new URL('../../../python/svc-client', import.meta.url))
/** With `build`, `hatchling`, `mypy`, `fsspec` and `tqdm`. */
const TOOLS = process.env.SVC_PYTHON_TOOLS ?? 'python3'
const REPO = 'Qwen/Qwen3-0.6B-GGUF'
const REF = 'qwen/qwen3-0.6b-gguf:q8_0'
/** A released client, which the current daemon has to serve. */
const RELEASED = readdirSync(join(SOURCE, 'released')).filter((name) => name.endsWith('.whl'))

const works = (program: string, ...code: string[]): boolean => spawnSync(program, ['-c', code.join('\n')]).status === 0
const hasPython = works('python3', 'import sys', 'sys.exit(sys.version_info < (3, 10))')
const hasTools = works(TOOLS, 'import build, hatchling, mypy, fsspec, tqdm, venv')
const reason = hasPython ? 'build, hatchling, mypy, fsspec or tqdm are not installed' : 'Python 3.10 or newer'

let daemon: TestDaemon
beforeAll(async () => {
  if (!hasPython) return
  const hub = await startFakeHub()
  undo.later(() => hub.close())
  hub.commit({
    id: REPO,
    files: [
      { path: 'Qwen3-0.6B-Q8_0.gguf', content: makeGguf({ seed: 3 }) },
      { path: 'mmproj-F16.gguf', content: makeGguf({ metadata: { 'general.architecture': 'clip' } }) },
      { path: 'config.json', content: Buffer.from('{"model_type": "qwen3"}') },
      { path: 'nested/notes.json', content: Buffer.from('{}') }
    ]
  })
  hub.commit({
    id: 'acme/Several',
    files: ['q4_0', 'q8_0'].map((quant) => ({ path: `several-${quant}.gguf`, content: makeGguf({}) }))
  })
  hub.commit({ id: 'acme/Broken', files: [{ path: 'broken-q8_0.gguf', content: Buffer.from('hello') }] })
  const folder = mkdtempSync(join(tmpdir(), 'svc-python-'))
  undo.later(() => rmSync(folder, { recursive: true, force: true }))
  const names = makeModelFolder(folder, { ggufs: {} })
  hub.commit({ id: 'acme/Model-7B', files: names.map((path) => ({ path, content: readFileSync(join(folder, path)) })) })
  daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } }, undo.later)
  expect(await daemon.svc('import', 'hf', REPO)).toMatchObject({ code: 0 })
})

/** Fails with the output of the program. */
async function run(program: string, args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const own = { SVC_SOCKET: daemon.socketPath, SVC_TEST_REF: REF, SVC_TEST_REPO: REPO, PYTHONDONTWRITEBYTECODE: '1' }
  const options = { env: { ...process.env, ...own, ...env }, cwd: SOURCE }
  const { stdout, stderr } = await promisify(execFile)(program, args, options).catch((error: unknown) => {
    throw new Error(`${(error as { stdout: string }).stdout}${(error as { stderr: string }).stderr}`)
  })
  return stdout + stderr
}

const unittests = ['-W', 'error::ResourceWarning', '-m', 'unittest', 'discover', '-s', 'tests', '-v']

it.skipIf(!hasPython)('the Python client passes its tests from its sources', async () => {
  const said = await run('python3', unittests, { PYTHONPATH: join(SOURCE, 'src') })
  expect(said).toMatch(/test_pulls_with_progress.* ok/)
})

it.skipIf(!hasPython)('a script of the guide maps tensors without any library', async () => {
  const guide = readFileSync(join(SOURCE, '../../docs/guide/python.md'), 'utf8')
  const scripts = [...guide.matchAll(/```python\n([\s\S]*?)```/g)].map(([, script]) => script!)
  const [pull, map] = [scripts[0]!, scripts.find((script) => script.includes('mmap'))!]
  const env = { PYTHONPATH: join(SOURCE, 'src') }
  await run('python3', ['-c', pull], env)
  expect(await run('python3', ['-c', map], env)).toMatch(/^\S+ \[\d+/m)
})

it.skipIf(!hasTools)(
  `wheel and sdist of the Python client work in a clean environment${hasTools ? '' : `: ${reason}`}`,
  async () => {
    const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'svc-python-'))
    undo.later(() => rmSync(folder, { recursive: true, force: true }))
    expect(await run(TOOLS, ['-m', 'mypy', '--cache-dir', join(folder, 'mypy')])).toContain('no issues found')
    await run(TOOLS, ['-m', 'build', '--no-isolation', '--outdir', folder])
    const built = readdirSync(folder).filter((name) => name.endsWith('.whl'))
    expect(built).toHaveLength(1)
    expect(readdirSync(folder).some((name) => name.endsWith('.tar.gz'))).toBe(true)
    // fsspec and tqdm are taken from the tools: the wheel declares them as extras
    const python = join(folder, 'clean/bin/python')
    await run(TOOLS, ['-m', 'venv', join(folder, 'clean')])
    const [fiveLines] = /```python\n([\s\S]*?)```/.exec(readFileSync(join(SOURCE, 'README.md'), 'utf8'))!.slice(1)
    const wheels = [...RELEASED.map((name) => join(SOURCE, 'released', name)), join(folder, built[0]!)]
    for (const wheel of wheels) {
      await run(python, ['-m', 'pip', 'install', '--quiet', '--no-index', '--force-reinstall', wheel])
      const said = await run(python, ['-W', 'error', '-c', fiveLines!])
      expect(said, wheel).toMatch(/\/Qwen3-0\.6B-Q8_0\.gguf\n$/i)
    }
    expect(await run(python, unittests)).toMatch(/test_the_file_system.* skipped/)
    const site = (await run(TOOLS, ['-c', 'import sysconfig; print(sysconfig.get_paths()["purelib"])'])).trim()
    expect(await run(python, unittests, { PYTHONPATH: site })).toMatch(/test_the_file_system.* ok/)
  }
)
