// The packages that run: ours and what they depend on, as the lockfile has them installed.
import { existsSync, globSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { staleFiles } from '../built-files.ts'
import { FileTree } from './tree.ts'

interface Manifest {
  readonly name: string
  readonly version: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly scripts?: unknown
  readonly devDependencies?: unknown
  readonly exports?: Readonly<Record<string, unknown>>
}

/** A package as it is installed here, and where it goes. */
interface Placed {
  readonly folder: string
  readonly place: string
}

const manifestOf = (folder: string): Manifest => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))

/**
 * `node_modules` with the packages `names` of the workspace at `root` and their production dependencies. The installed tree must be
 * the lockfile's. Each version lies at the top where its name is free there, else below the package that needs it.
 * @throws Error for a stale installation, a package that is not built, native code, or an install script
 */
export function collectModules(root: string, names: readonly string[]): FileTree {
  requireLocked(root)
  const placed = new Map<string, Placed>()
  const queue: Placed[] = []
  const put = (folder: string, place: string): void => {
    if (placed.has(place)) return
    const each = { folder, place }
    placed.set(place, each)
    queue.push(each)
  }
  for (const name of names) put(workspaceFolder(root, name), `node_modules/${name}`)
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const { dependencies = {}, optionalDependencies = {} } = manifestOf(next.folder)
    for (const name of [...Object.keys(dependencies), ...Object.keys(optionalDependencies)].sort()) {
      const folder = installed(next.folder, name)
      if (folder === undefined) {
        if (name in optionalDependencies) continue
        throw new Error(`${name}, which ${next.folder} needs, is not installed`)
      }
      if (visible(placed, next.place, name)?.folder === folder) continue
      const top = `node_modules/${name}`
      put(folder, placed.has(top) ? `${next.place}/node_modules/${name}` : top)
    }
  }
  const tree = new FileTree()
  for (const { folder, place } of placed.values()) addPackage(tree, root, folder, place)
  return tree
}

/** pnpm keeps the lockfile that it installed from. */
function requireLocked(root: string): void {
  const wanted = readFileSync(join(root, 'pnpm-lock.yaml'), 'utf8')
  const current = join(root, 'node_modules/.pnpm/lock.yaml')
  if (!existsSync(current) || readFileSync(current, 'utf8') !== wanted)
    throw new Error('what is installed is not what the lockfile says: run pnpm install --frozen-lockfile')
}

function workspaceFolder(root: string, name: string): string {
  const found = globSync('packages/*/package.json', { cwd: root })
    .map((path) => dirname(join(root, path)))
    .find((folder) => manifestOf(folder).name === name)
  if (found === undefined) throw new Error(`there is no package ${name}`)
  return found
}

/** Where Node would find `name` from a package, links resolved. */
function installed(from: string, name: string): string | undefined {
  for (let folder = from; folder !== dirname(folder); folder = dirname(folder)) {
    const candidate = basename(folder) === 'node_modules' ? join(folder, name) : join(folder, 'node_modules', name)
    if (existsSync(join(candidate, 'package.json'))) return realpathSync(candidate)
  }
  return undefined
}

/** What Node finds as `name` from a place in the tree. */
function visible(placed: ReadonlyMap<string, Placed>, place: string, name: string): Placed | undefined {
  for (let at = place; at !== ''; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    const found = placed.get(`${at}/node_modules/${name}`)
    if (found !== undefined) return found
  }
  return placed.get(`node_modules/${name}`)
}

/** What no program reads. Licences stay, whatever their ending. */
const UNREAD =
  /\.(?:map|d\.[cm]?ts|ts|tsbuildinfo|markdown|md)$|(?:^|\/)(?:test|tests|docs|example|examples|benchmarks?|coverage|\.[^/]+)\//i
const LICENCE = /(?:^|\/)(?:licen[cs]e|copying|notice|third-party)/i

function addPackage(tree: FileTree, root: string, folder: string, place: string): void {
  const manifest = manifestOf(folder)
  const { scripts, devDependencies, ...rest } = manifest
  const ours = manifest.name.startsWith('@svc/')
  if (!ours) {
    if (['preinstall', 'install', 'postinstall'].some((script) => script in Object(scripts)))
      throw new Error(`${manifest.name} has an install script`)
    tree.addFolder(place, folder, (path) => {
      if (/(?:^|\/)node_modules\//.test(path) || /^\.[^/]+$/.test(path)) return false
      if (/\.node$/.test(path)) throw new Error(`${manifest.name} brings native code: ${path}`)
      return (LICENCE.test(path) && !/\.(?:map|ts)$/.test(path)) || !UNREAD.test(path)
    })
    return
  }
  const dist = join(folder, 'dist')
  const built = builtFiles(folder)
  if (built.length === 0) throw new Error(`${manifest.name} is not built: run pnpm build`)
  const dependencies = Object.fromEntries(
    Object.entries(manifest.dependencies ?? {}).map(([name, range]) => [
      name,
      range.startsWith('workspace:') ? manifestOf(workspaceFolder(root, name)).version : range
    ])
  )
  tree.add(`${place}/package.json`, `${JSON.stringify({ ...rest, dependencies }, null, 2)}\n`)
  tree.add(`${place}/LICENSE`, readFileSync(join(root, 'LICENSE')))
  for (const name of ['bin', 'units'])
    if (existsSync(join(folder, name))) tree.addFolder(`${place}/${name}`, join(folder, name), () => true)
  for (const file of built) tree.add(`${place}/dist/${file}`, readFileSync(join(dist, file)))
}

/** What runs, of a fresh build. */
function builtFiles(folder: string): string[] {
  const dist = join(folder, 'dist')
  if (!existsSync(dist)) return []
  const stale = new Set(staleFiles(folder))
  return readdirSync(dist)
    .filter((name) => name.endsWith('.js') || name === 'THIRD-PARTY-LICENSES')
    .filter((name) => !stale.has(`dist/${name}`))
    .sort()
}
