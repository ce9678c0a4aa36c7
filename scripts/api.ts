/**
 * What the public packages export: `node scripts/api.ts update | check | undocumented`, after the build.
 *
 * `update` writes `packages/*\/api.md`, `check` fails where one of them is stale, so that a change of the public interface is
 * seen in review, and where one names `any`, or a type of another package that it does not export. `undocumented` lists exports
 * without a docstring and fails when there are any.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Declarations } from './api/declarations.ts'

interface PackageJson {
  readonly name: string
  readonly private?: boolean
  readonly exports?: Readonly<Record<string, string | { readonly types?: string }>>
}
interface Entry {
  readonly specifier: string
  readonly types: string
}

const root = process.env.SVC_API_ROOT ?? join(import.meta.dirname, '..')

/** The public packages that programs import, with their entries. */
const packages = readdirSync(join(root, 'packages'))
  .map((room) => ({ room, path: join(root, 'packages', room, 'package.json') }))
  .filter(({ path }) => existsSync(path))
  .map(({ room, path }) => ({ room, json: JSON.parse(readFileSync(path, 'utf8')) as PackageJson }))
  .filter(({ json }) => json.private !== true)
  .map(({ room, json }) => ({
    room,
    entries: Object.entries(json.exports ?? {}).flatMap(([subpath, target]): Entry[] =>
      typeof target === 'string' || target.types === undefined
        ? []
        : [
            {
              specifier: `${json.name}${subpath.slice(1)}`,
              types: join(root, 'packages', room, target.types)
            }
          ]
    )
  }))
  .filter(({ entries }) => entries.length > 0)

const declarations = new Declarations()

function report(entries: readonly Entry[]): string {
  const parts = entries.map(({ specifier, types }) => {
    const block = declarations.of(types).map(({ text }) => text)
    return `## \`${specifier}\`\n\n\`\`\`ts\n${block.join('\n\n')}\n\`\`\`\n`
  })
  return `# Public interface\n\nMade by \`pnpm api:update\`; a change here is a change for users.\n\n${parts.join('\n')}`
}

function update(): void {
  for (const { room, entries } of packages) writeFileSync(join(root, 'packages', room, 'api.md'), report(entries))
}

function check(): number {
  const stale = packages.filter(({ room, entries }) => {
    const path = join(root, 'packages', room, 'api.md')
    return !existsSync(path) || readFileSync(path, 'utf8') !== report(entries)
  })
  for (const { room } of stale)
    console.error(`packages/${room}/api.md is stale: run pnpm api:update, and look at the change`)
  return stale.length + unnamed()
}

/** Counts `any`, and types of other packages that users would have to look for elsewhere: an entry exports what it names. */
function unnamed(): number {
  const missing = packages.flatMap(({ entries }) =>
    entries.flatMap(({ specifier, types }) => {
      const all = declarations.of(types)
      const names = new Set(all.map(({ name }) => name))
      return all.flatMap(({ name, foreign }) =>
        foreign
          .filter((each) => !names.has(each))
          .map((each) => `${specifier}: ${name} names ${each}, which it does not export`)
      )
    })
  )
  for (const line of missing) console.error(line)
  return missing.length
}

function undocumented(): number {
  const missing = new Set<string>()
  let all = 0
  for (const { room, entries } of packages) {
    for (const { types } of entries) {
      for (const { name, isDocumented } of declarations.of(types)) {
        all++
        if (!isDocumented) missing.add(`packages/${room}: ${name}`)
      }
    }
  }
  for (const line of missing) console.error(line)
  console.log(`api: ${missing.size} of ${all} public exports have no docstring`)
  return missing.size
}

const commands: Readonly<Record<string, () => number | void>> = { update, check, undocumented }
const command = commands[process.argv[2] ?? '']
if (command === undefined) {
  console.error(`usage: node scripts/api.ts ${Object.keys(commands).join(' | ')}`)
  process.exitCode = 2
} else {
  process.exitCode = (command() ?? 0) > 0 ? 1 : 0
}
