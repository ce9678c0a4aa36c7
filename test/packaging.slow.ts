// Packs every publishable package as a release would and looks at the tarballs; needs `dist`, so `pnpm build` comes first.
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { contentFaults, publintFaults, typeFaults } from './tarball-faults.ts'
import { packAll, packages, root } from './tarballs.ts'

const run = promisify(execFile)
const scratch = mkdtempSync(join(tmpdir(), 'svc-packaging-'))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

// Seconds on a quiet machine; several programs are started, so a busy one may take its time.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

let tarball: (name: string) => string
beforeAll(async () => {
  tarball = await packAll(join(scratch, 'tarballs'))
})

describe.each(packages)('$name', ({ name, folder }) => {
  test('publint finds nothing', async () => {
    expect(await publintFaults(tarball(name))).toEqual([])
  })

  test('its types resolve as ES modules, from every entry', async () => {
    expect(await typeFaults(tarball(name))).toEqual([])
  })

  test('the tarball has the promised files and nothing of the workspace', async () => {
    const unpacked = join(scratch, 'unpacked', folder)
    mkdirSync(unpacked, { recursive: true })
    expect(await contentFaults(tarball(name), unpacked, folder)).toEqual([])
  })
})

test('each of these checks detects a broken package', async () => {
  const folder = join(scratch, 'faulty/package')
  for (const each of ['dist', 'src']) mkdirSync(join(folder, each), { recursive: true })
  const files = {
    'package.json': JSON.stringify({
      name: '@svc/faulty',
      version: '1.0.0',
      type: 'module',
      bin: { faulty: './dist/index.js' },
      exports: {
        // the types stand behind, where nothing reads them
        '.': { default: './dist/index.js', types: './dist/index.d.ts' },
        './cjs': { types: './dist/cjs.d.ts', default: './dist/cjs.cjs' },
        './gone': './dist/gone.js'
      },
      dependencies: { '@svc/ref': 'workspace:^' }
    }),
    'dist/index.js': 'export const a = 1\n',
    'dist/index.d.ts': 'export declare const a: number\n',
    'dist/cjs.cjs': 'exports.a = 1\n',
    'dist/cjs.d.ts': 'export declare const a: number\n',
    'dist/chunk-AAAAAAAA.js': 'export const a = 0\n',
    'dist/chunk-AAAAAAAA.js.map': '{}\n',
    'src/cjs.ts': 'export const a = 1\n',
    'src/index.ts': 'export const a = 1\n',
    'notes.txt': 'not for users\n'
  }
  for (const [path, content] of Object.entries(files)) writeFileSync(join(folder, path), content)
  const faulty = join(scratch, 'faulty.tgz')
  await run('tar', ['-czf', faulty, '-C', dirname(folder), 'package'])
  expect((await publintFaults(faulty)).map((fault) => fault.split(':')[0])).toEqual([
    'EXPORTS_TYPES_SHOULD_BE_FIRST',
    'EXPORTS_DEFAULT_SHOULD_BE_LAST',
    'FILE_DOES_NOT_EXIST',
    'BIN_FILE_NOT_EXECUTABLE'
  ])
  expect(new Set(await typeFaults(faulty))).toEqual(new Set(['FalseESM', 'NoResolution ./gone']))
  const unpacked = join(scratch, 'unpacked', 'faulty')
  mkdirSync(unpacked, { recursive: true })
  expect(await contentFaults(faulty, unpacked, 'faulty')).toEqual([
    'README.md is missing',
    'LICENSE is missing',
    'README.md does not say what is stable',
    'notes.txt is not for users',
    'dist/chunk-AAAAAAAA.js is of another build',
    'dist/chunk-AAAAAAAA.js.map is of another build',
    './dist/gone.js is named, but absent',
    '@svc/ref is workspace:^',
    './dist/index.js does not begin with #!/usr/bin/env node',
    'package.json lacks license',
    'package.json lacks engines.node',
    'package.json lacks author',
    'package.json lacks homepage',
    'package.json lacks repository.directory',
    'package.json lacks bugs',
    'package.json lacks keywords',
    'package.json lacks files with CHANGELOG.md',
    'package.json lacks sideEffects'
  ])
})

describe('a project elsewhere', () => {
  const project = join(scratch, 'consumer')
  const consumer = `import { openDiskStore, type BlobStore } from '@svc/cas'
import { createMemoryStore } from '@svc/cas-testsuite'
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
        dependencies: Object.fromEntries(
          ['@svc/ref', '@svc/cas', '@svc/cas-testsuite'].map((name) => [name, `file:${tarball(name)}`])
        ),
        overrides: { '@svc/ref': '$@svc/ref', '@svc/cas': '$@svc/cas' }
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

test('@svc/ref runs without Node', async () => {
  // an empty realm with nothing but the language: no process, no Buffer, no fetch.
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
