// Packs every publishable package as a release would and looks at the tarballs; needs `dist`, so `pnpm build` comes first.
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { checkPackage, createPackageFromTarballData, type ResolutionKind } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { packAll, packages, readPackageJson, root } from './tarballs.ts'

const run = promisify(execFile)
const scratch = mkdtempSync(join(tmpdir(), 'svc-packaging-'))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

// Seconds on a quiet machine; several programs are started, so a busy one may take its time.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

/** Resolutions that our users have: packages are ES modules, for Node and bundlers. */
const isEsm = (kind: ResolutionKind): boolean => kind === 'node16-esm' || kind === 'bundler'

let tarball: (name: string) => string
beforeAll(async () => {
  tarball = await packAll(join(scratch, 'tarballs'))
})

describe.each(packages)('$name', ({ name, folder }) => {
  test('publint finds nothing', async () => {
    const { messages, pkg } = await publint({
      pack: { tarball: new Uint8Array(readFileSync(tarball(name))).buffer },
      strict: true
    })
    expect(messages.map((message) => formatMessage(message, pkg ?? {}))).toEqual([])
  })

  test('its types resolve as ES modules, from every entry', async () => {
    const analysis = await checkPackage(createPackageFromTarballData(new Uint8Array(readFileSync(tarball(name)))))
    const problems = !analysis.types
      ? [{ kind: 'NoTypes' }]
      : analysis.problems.filter((problem) => !('resolutionKind' in problem) || isEsm(problem.resolutionKind))
    expect(problems).toEqual([])
  })

  test('the tarball holds what it promises and nothing of the workspace', async () => {
    const { stdout } = await run('tar', ['-tzf', tarball(name)])
    const files = stdout
      .trimEnd()
      .split('\n')
      .map((path) => path.replace(/^package\//, ''))
    expect(files).toEqual(expect.arrayContaining(['package.json', 'README.md', 'LICENSE']))
    expect(
      files.filter((path) => !/^(?:bin|dist|src)\/|^(?:package\.json|README\.md|LICENSE|CHANGELOG\.md)$/.test(path))
    ).toEqual([])

    const unpacked = join(scratch, 'unpacked', folder)
    mkdirSync(unpacked, { recursive: true })
    await run('tar', ['-xzf', tarball(name), '-C', unpacked, '--strip-components=1'])
    const json = readPackageJson(unpacked)
    expect(Object.values(json.dependencies ?? {}).filter((range) => /^(?:workspace|file|link):/.test(range))).toEqual(
      []
    )
    expect(json).toMatchObject({
      license: 'Apache-2.0',
      engines: { node: expect.stringMatching(/^>=22/) as unknown },
      author: expect.any(String) as unknown,
      homepage: expect.stringContaining(`/packages/${folder}#`) as unknown,
      repository: { directory: `packages/${folder}` },
      bugs: expect.stringMatching(/^https:/) as unknown,
      keywords: expect.arrayContaining([expect.any(String)]) as unknown
    })
    expect(json.sideEffects).toBeDefined()
    const targets = [
      ...Object.values(json.bin ?? {}),
      ...Object.values(json.exports ?? {}).flatMap((entry) =>
        typeof entry === 'string' ? entry : Object.values(entry)
      )
    ]
    expect(targets.filter((target) => !existsSync(join(unpacked, target)))).toEqual([])
    for (const bin of Object.values(json.bin ?? {})) {
      expect(readFileSync(join(unpacked, bin), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
    }
  })
})

describe('a project elsewhere', () => {
  const project = join(scratch, 'consumer')
  const consumer = `import { openDiskStore, createMemoryStore, type BlobStore } from '@svc/cas'
import { formatRef, parseRef, selectMember, RefError, type ModelRef, type Sha256Digest } from '@svc/ref'

async function* bytes(text: string): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(text)
}
async function roundTrip(store: BlobStore): Promise<string> {
  const { digest, existed }: { digest: Sha256Digest; existed: boolean } = await store.ingest(bytes('hello'))
  const reader = await store.open(digest)
  let text = ''
  for await (const chunk of reader.stream()) text += new TextDecoder().decode(chunk)
  await store.close()
  return \`\${digest} \${existed} \${text}\`
}
const ref: ModelRef = parseRef('svc:///Acme/tiny:q4')
const quant: string = selectMember([{ quant: 'q4_k_m' }], ref.quant ?? '').quant
// @ts-expect-error a digest is branded: a string is none
const unbranded: Sha256Digest = 'sha256:00'
console.log(formatRef(ref), quant, unbranded, new RefError('scheme', 'x').code)
console.log(await roundTrip(createMemoryStore()))
console.log(await roundTrip(await openDiskStore({ root: process.argv[2] ?? '' })))
`

  beforeAll(async () => {
    mkdirSync(project, { recursive: true })
    writeFileSync(
      join(project, 'package.json'),
      JSON.stringify({
        name: 'consumer',
        version: '1.0.0',
        private: true,
        type: 'module',
        dependencies: { '@svc/ref': `file:${tarball('@svc/ref')}`, '@svc/cas': `file:${tarball('@svc/cas')}` },
        overrides: { '@svc/ref': '$@svc/ref' }
      })
    )
    writeFileSync(join(project, 'consumer.ts'), consumer)
    writeFileSync(
      join(project, 'tsconfig.json'),
      JSON.stringify({
        compilerOptions: {
          module: 'NodeNext',
          target: 'ES2023',
          lib: ['ES2024', 'ESNext.Disposable'],
          strict: true,
          noEmit: true,
          exactOptionalPropertyTypes: true,
          types: ['node'],
          typeRoots: [join(root, 'node_modules', '@types')]
        },
        files: ['consumer.ts']
      })
    )
    await run('npm', ['install', '--offline', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: project })
  })

  test('installs packed @svc/ref and @svc/cas, and uses them', async () => {
    const { stdout } = await run(process.execPath, ['consumer.ts', join(scratch, 'store')], { cwd: project })
    const stored = 'sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824 false hello'
    expect(stdout.trimEnd().split('\n')).toEqual(['svc:///acme/tiny:q4 q4_k_m sha256:00 E_PARSE', stored, stored])
  })

  test('type-checks against the declarations, without skipLibCheck', async () => {
    const { stdout } = await run(join(root, 'node_modules', '.bin', 'tsc'), ['-p', 'tsconfig.json'], {
      cwd: project
    }).catch((error: { stdout: string }) => error)
    expect(stdout).toBe('')
  })
})

test('@svc/ref runs where there is no Node', async () => {
  // An empty realm with nothing but the language: no process, no Buffer, no fetch.
  const dist = readFileSync(join(root, 'packages/ref/dist/index.js'), 'utf8')
  const script = `
    import vm from 'node:vm'
    import { readFileSync } from 'node:fs'
    const module = new vm.SourceTextModule(readFileSync(0, 'utf8'), { context: vm.createContext({}) })
    await module.link(() => { throw new Error('@svc/ref imports something') })
    await module.evaluate()
    console.log(module.namespace.formatRef(module.namespace.parseShortRef('Acme/tiny:q4')))
    try { module.namespace.parseRef('acme/tiny:q4') } catch (error) { console.log(error.code, error.suggestion) }
  `
  const child = run(process.execPath, [
    '--experimental-vm-modules',
    '--no-warnings',
    '--input-type=module',
    '-e',
    script
  ])
  child.child.stdin?.end(dist)
  expect((await child).stdout).toBe('svc:///acme/tiny:q4\nE_PARSE svc:///acme/tiny:q4\n')
})
