/**
 * `pnpm release [--dry-run]`: makes versions and CHANGELOG.md files of the changesets, and publishes what is new with
 * provenance. Runs in continuous integration, where the registry can tell who builds; after the build.
 *
 * `--dry-run` does the same in a copy of the tree, into a registry on loopback, and installs a package from there. Provenance
 * is the one step that it leaves out: only the identity of the build machine can sign it; the statement that would be signed
 * is among the files. These go to `--out` (default `dist`): the packages, and what `pnpm dist` makes for the platforms of
 * `--platform` (default all). With `--only NAME…` versions and changelogs are made of all packages, but only the named ones
 * are published and nothing is kept, which takes seconds.
 */
import { execFile } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { removeStaleFiles } from './built-files.ts'
import { startLocalRegistry } from './release/registry.ts'

const root = join(import.meta.dirname, '..')
const { values } = parseArgs({
  options: {
    'dry-run': { type: 'boolean' },
    only: { type: 'string', multiple: true },
    out: { type: 'string', default: join(root, 'dist') },
    platform: { type: 'string', multiple: true }
  }
})

async function run(
  cwd: string,
  program: string,
  args: readonly string[],
  more: NodeJS.ProcessEnv = {}
): Promise<string> {
  const env = { ...process.env, ...more }
  const child = promisify(execFile)(program, args, { cwd, env, maxBuffer: 2 ** 26 })
  try {
    return (await child).stdout
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    throw new Error(`${program} ${args.join(' ')} failed:\n${stdout}${stderr}`, { cause: error })
  }
}

/** changesets starts `pnpm`: a folder for the PATH with the one that runs this script, else with the one that npx has. */
async function pnpmFolder(scratch: string): Promise<string> {
  const own = process.env.npm_execpath
  const path =
    own?.includes('pnpm') === true
      ? own
      : (await run(root, 'npx', ['--yes', '-p', 'pnpm@10', '-c', 'command -v pnpm'])).trim()
  const folder = join(scratch, 'bin')
  mkdirSync(folder)
  writeFileSync(join(folder, 'pnpm'), `#!/bin/sh\nexec '${process.execPath}' '${realpathSync(path)}' "$@"\n`, {
    mode: 0o755
  })
  return folder
}

/** Versions and publishes the tree at `cwd`. @param between runs on the versioned tree, before it is published */
async function release(cwd: string, env: NodeJS.ProcessEnv, between = (): void => undefined): Promise<void> {
  for (const room of readdirSync(join(cwd, 'packages'))) {
    if (existsSync(join(cwd, 'packages', room, 'dist'))) removeStaleFiles(join(cwd, 'packages', room))
  }
  const changeset = join(root, 'node_modules/.bin/changeset')
  // without any, the versions of the tree are what is released
  if (readdirSync(join(cwd, '.changeset')).some((name) => name.endsWith('.md') && name !== 'README.md'))
    process.stdout.write(await run(cwd, changeset, ['version'], env))
  between()
  await run(cwd, 'git', ['add', '--all'])
  await run(cwd, 'git', ['commit', '--quiet', '--allow-empty', '--message', 'Release'])
  process.stdout.write(await run(cwd, changeset, ['publish'], env))
}

interface Manifest {
  readonly name: string
  readonly version: string
  readonly private?: boolean
}

const readManifest = (folder: string): Manifest => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))

/** The folders of the packages that are not private, in the tree at `cwd`. */
const publicFolders = (cwd: string): string[] =>
  readdirSync(join(cwd, 'packages'))
    .map((room) => join(cwd, 'packages', room))
    .filter((folder) => existsSync(join(folder, 'package.json')) && readManifest(folder).private !== true)

/** Whether a dry run that publishes only `names` needs a file: manifests, changesets, and all of those packages. */
function isNeeded(path: string, names: readonly string[]): boolean {
  if (/^\.changeset\/|(?:^|\/)(?:package\.json|CHANGELOG\.md)$|^pnpm-/.test(path)) return true
  const [, room] = /^packages\/([^/]+)\//.exec(path) ?? []
  return room !== undefined && room !== 'internal' && names.includes(readManifest(join(root, 'packages', room)).name)
}

/** The tracked files with the built packages, as a repository of its own; with `only` no more than those packages need. */
async function copyTree(to: string, only: readonly string[] | undefined): Promise<void> {
  const tracked = (await run(root, 'git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'])).split('\0')
  const files = tracked
    .filter((path) => path !== '' && existsSync(join(root, path)))
    .filter((path) => only === undefined || isNeeded(path, only))
  for (const path of files) {
    mkdirSync(dirname(join(to, path)), { recursive: true })
    // `recursive`: without it, a link to a folder is refused, although the link itself is copied
    cpSync(join(root, path), join(to, path), { recursive: true, verbatimSymlinks: true })
  }
  for (const manifest of files.filter((path) => /^packages\/.*package\.json$/.test(path))) {
    if (only !== undefined && !only.includes(readManifest(join(root, dirname(manifest))).name)) continue
    const dist = join(dirname(manifest), 'dist')
    if (existsSync(join(root, dist))) cpSync(join(root, dist), join(to, dist), { recursive: true })
    // publishing replaces `workspace:^` by the versions of the packages that are linked: those of the copy.
    const linked = join(dirname(manifest), 'node_modules/@svc')
    if (!existsSync(join(root, linked))) continue
    mkdirSync(join(to, linked), { recursive: true })
    for (const name of readdirSync(join(root, linked))) {
      symlinkSync(join(to, relative(root, realpathSync(join(root, linked, name)))), join(to, linked, name))
    }
  }
  symlinkSync(join(root, 'node_modules'), join(to, 'node_modules'))
  await run(to, 'git', ['init', '--quiet', '--initial-branch', 'main'])
  await run(to, 'git', ['config', 'user.name', 'dry run'])
  await run(to, 'git', ['config', 'user.email', 'dry-run@localhost'])
  await run(to, 'git', ['add', '--all'])
  await run(to, 'git', ['commit', '--quiet', '--message', 'The tree'])
}

/** Every package has got a version and a changelog that begins with it. @throws Error naming one that has not */
function checkVersions(cwd: string): void {
  for (const folder of publicFolders(cwd)) {
    const { name, version } = readManifest(folder)
    const changelog = existsSync(join(folder, 'CHANGELOG.md')) ? readFileSync(join(folder, 'CHANGELOG.md'), 'utf8') : ''
    if (!changelog.startsWith(`# ${name}\n\n## ${version}\n`)) throw new Error(`${name} has no changelog of ${version}`)
  }
}

/** Keeps all packages but the named ones from being published. */
function withhold(cwd: string, names: readonly string[]): void {
  for (const folder of publicFolders(cwd)) {
    const manifest = readManifest(folder)
    if (names.includes(manifest.name)) continue
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...manifest, private: true }))
  }
}

async function dryRun(only: readonly string[] | undefined): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), 'svc-release-'))
  await using registry = await startLocalRegistry()
  try {
    const copy = join(scratch, 'tree')
    await copyTree(copy, only)
    const npmrc = join(scratch, 'npmrc')
    // the registry asks for no token, but npm does not publish without one.
    writeFileSync(
      npmrc,
      `registry=${registry.url}\n${registry.url.replace('http:', '')}:_authToken=none\nprovenance=false\n`
    )
    const env = {
      CI: 'true',
      PATH: `${await pnpmFolder(scratch)}:${process.env.PATH}`,
      NPM_CONFIG_USERCONFIG: npmrc,
      npm_config_userconfig: npmrc,
      npm_config_registry: registry.url,
      npm_config_verify_deps_before_run: 'false'
    }
    await release(copy, env, () => {
      checkVersions(copy)
      if (only !== undefined) withhold(copy, only)
    })
    if (registry.published.length === 0) throw new Error('nothing was published')
    const out = only === undefined ? resolve(values.out) : scratch
    mkdirSync(out, { recursive: true })
    for (const [name, tarball] of registry.tarballs) {
      // as `npm pack` names it
      const path = join(out, `svc-${basename(name)}`)
      writeFileSync(path, tarball)
      const files = (await run(scratch, 'tar', ['-tzf', path])).split('\n')
      for (const file of ['LICENSE', 'CHANGELOG.md', 'README.md'])
        if (!files.includes(`package/${file}`)) throw new Error(`${name} has no ${file}`)
    }
    const project = join(scratch, 'project')
    mkdirSync(project)
    writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'project', private: true, type: 'module' }))
    const dependent = only?.at(-1) ?? '@svc/ref'
    await run(project, 'npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', dependent], env)
    if (only === undefined) {
      const platforms = (values.platform ?? []).flatMap((name) => ['--platform', name])
      const words = ['--conditions=svc-source', join(root, 'scripts/dist/main.ts'), '--out', out, ...platforms]
      await run(root, process.execPath, words)
      process.stdout.write(readFileSync(join(out, 'SHA256SUMS'), 'utf8'))
    }
    console.log(`dry run: published ${registry.published.toSorted().join(', ')}; installed ${dependent} from there`)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

if (values['dry-run'] === true) {
  await dryRun(values.only)
} else {
  if (process.env.CI === undefined)
    throw new Error('a release is made by continuous integration; try: pnpm release --dry-run')
  if ((await run(root, 'git', ['status', '--porcelain'])) !== '')
    throw new Error('the tree has changes that are not committed')
  const scratch = mkdtempSync(join(tmpdir(), 'svc-release-'))
  await release(root, { NPM_CONFIG_PROVENANCE: 'true', PATH: `${await pnpmFolder(scratch)}:${process.env.PATH}` })
  rmSync(scratch, { recursive: true })
  await run(root, 'git', ['push', '--follow-tags'])
}
