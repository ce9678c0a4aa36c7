/**
 * `pnpm release [--dry-run]`: makes versions and CHANGELOG.md files of the changesets, and publishes what is new with
 * provenance. Runs in continuous integration, where the registry can tell who builds; after the build.
 *
 * `--dry-run` does the same in a copy of the tree, into a registry on loopback, and installs a package from there. Provenance
 * is the one step that it leaves out: only the identity of the build machine can sign it.
 */
import { execFile } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { removeStaleFiles } from './built-files.ts'
import { startLocalRegistry } from './release/registry.ts'

const root = join(import.meta.dirname, '..')
const { values } = parseArgs({ options: { 'dry-run': { type: 'boolean' } } })

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

/** Versions and publishes the tree at `cwd`. */
async function release(cwd: string, env: NodeJS.ProcessEnv): Promise<void> {
  for (const room of readdirSync(join(cwd, 'packages'))) {
    if (existsSync(join(cwd, 'packages', room, 'dist'))) removeStaleFiles(join(cwd, 'packages', room))
  }
  const changeset = join(root, 'node_modules/.bin/changeset')
  process.stdout.write(await run(cwd, changeset, ['version'], env))
  await run(cwd, 'git', ['add', '--all'])
  await run(cwd, 'git', ['commit', '--quiet', '--message', 'Release'])
  process.stdout.write(await run(cwd, changeset, ['publish'], env))
}

/** The tracked files with the built packages, as a repository of its own. */
async function copyTree(to: string): Promise<void> {
  const tracked = (await run(root, 'git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'])).split('\0')
  const files = tracked.filter((path) => path !== '' && existsSync(join(root, path)))
  for (const path of files) {
    mkdirSync(dirname(join(to, path)), { recursive: true })
    cpSync(join(root, path), join(to, path), { verbatimSymlinks: true })
  }
  for (const manifest of files.filter((path) => /^packages\/.*package\.json$/.test(path))) {
    const dist = join(dirname(manifest), 'dist')
    if (existsSync(join(root, dist))) cpSync(join(root, dist), join(to, dist), { recursive: true })
    // Publishing replaces `workspace:^` by the versions of the packages that are linked: those of the copy.
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

async function dryRun(): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), 'svc-release-'))
  await using registry = await startLocalRegistry()
  try {
    const copy = join(scratch, 'tree')
    await copyTree(copy)
    const npmrc = join(scratch, 'npmrc')
    // The registry asks for no token, but npm does not publish without one.
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
    await release(copy, env)
    if (registry.published.length === 0) throw new Error('nothing was published')
    for (const [name, tarball] of registry.tarballs) {
      const path = join(scratch, 'published.tgz')
      writeFileSync(path, tarball)
      const files = (await run(scratch, 'tar', ['-tzf', path])).split('\n')
      for (const file of ['LICENSE', 'CHANGELOG.md', 'README.md'])
        if (!files.includes(`package/${file}`)) throw new Error(`${name} has no ${file}`)
    }
    const project = join(scratch, 'project')
    mkdirSync(project)
    writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'project', private: true, type: 'module' }))
    await run(project, 'npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', '@svc/ref'], env)
    console.log(`dry run: published ${registry.published.toSorted().join(', ')}; installed @svc/ref from there`)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

if (values['dry-run'] === true) {
  await dryRun()
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
