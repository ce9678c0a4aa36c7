// Packs every publishable package as a release would; needs `dist`, so `pnpm build` comes first.
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { removeStaleFiles } from '../scripts/built-files.ts'

const run = promisify(execFile)
export const root = fileURLToPath(new URL('..', import.meta.url))

export interface PackageJson {
  readonly name: string
  readonly private?: boolean
  readonly license?: string
  readonly engines?: { readonly node?: string }
  readonly author?: string
  readonly homepage?: string
  readonly repository?: { readonly directory?: string }
  readonly bugs?: string
  readonly keywords?: readonly string[]
  readonly files?: readonly string[]
  readonly sideEffects?: unknown
  readonly bin?: Record<string, string>
  readonly exports?: Record<string, string | Record<string, string>>
  readonly dependencies?: Record<string, string>
}

export const readPackageJson = (folder: string): PackageJson =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackageJson

/** The publishable packages; `folder` is below `packages`. */
export const packages = readdirSync(join(root, 'packages'))
  .filter((folder) => existsSync(join(root, 'packages', folder, 'package.json')))
  .map((folder) => ({ folder, json: readPackageJson(join(root, 'packages', folder)) }))
  .filter(({ json }) => json.private !== true)
  .map(({ folder, json }) => ({ folder, name: json.name, json }))

/** The pnpm that runs this test, else the one that npx has. */
const pnpm =
  process.env.npm_execpath?.includes('pnpm') === true
    ? [process.execPath, process.env.npm_execpath]
    : ['npx', '--yes', 'pnpm@10']

/** @returns the tarball of a package by its name. */
export async function packAll(destination: string): Promise<(name: string) => string> {
  const unbuilt = packages.filter(({ folder }) => !existsSync(join(root, 'packages', folder, 'dist')))
  if (unbuilt.length > 0)
    throw new Error(`no dist in ${unbuilt.map(({ folder }) => folder).join(', ')}; run "pnpm build"`)
  for (const { folder } of packages) removeStaleFiles(join(root, 'packages', folder))
  const [command = '', ...args] = pnpm
  const filters = packages.flatMap(({ name }) => ['--filter', name])
  await run(command, [...args, ...filters, 'pack', '--pack-destination', destination], {
    cwd: root,
    maxBuffer: 2 ** 24
  })
  return (name) => {
    const [file, ...more] = readdirSync(destination).filter(
      (each) => each.replace(/-\d.*$/, '') === name.replace('@', '').replace('/', '-')
    )
    if (file === undefined || more.length > 0) throw new Error(`no single tarball of ${name}`)
    return join(destination, file)
  }
}
