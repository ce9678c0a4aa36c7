// The TypeScript of README.md, docs/ and the packages' READMEs passes a strict type check, and every `svc` and `svcd` line of
// their shell blocks names a command that there is. Blocks that cannot pass say why in an HTML comment before them:
// `<!-- not checked: reason -->`; `<!-- given: declare const x: string -->` names what a block takes for granted. What the packages' examples print is compared by readme.test.ts in each package.
import { execFile } from 'node:child_process'
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const run = promisify(execFile)

interface Block {
  readonly page: string
  readonly line: number
  readonly language: string
  readonly code: string
  /** Declarations that the block takes for granted. */
  readonly given: string
  readonly isChecked: boolean
}

const pages = globSync(['*.md', 'docs/**/*.md', 'packages/*/README.md', 'systemd/README.md'], {
  cwd: root,
  exclude: (path) => path.includes('node_modules')
})
const blocks = pages.flatMap((page): Block[] => {
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(/(?:<!-- (not checked|given): (.+) -->\n+)?^```(\w+)\n([\s\S]*?)^```$/gm)].map((match) => ({
    page,
    line: text.slice(0, match.index).split('\n').length,
    language: match[3] ?? '',
    code: match[4] ?? '',
    given: match[1] === 'given' ? (match[2] ?? '') : '',
    isChecked: match[1] !== 'not checked'
  }))
})

test('the TypeScript of the pages passes a strict type check', async () => {
  const scratch = mkdtempSync(join(tmpdir(), 'svc-snippets-'))
  try {
    const files = blocks
      .filter(({ language, isChecked }) => (language === 'ts' || language === 'js') && isChecked)
      .map(({ page, line, code, given }) => {
        const name = `${page.replace(/[/.]/g, '-')}-${line}.ts`
        writeFileSync(join(scratch, name), `${code}\n${given}\nexport {}\n`)
        return name
      })
    expect(files.length).toBeGreaterThan(5)
    const exported = globSync('packages/*/package.json', { cwd: root }).flatMap((path) => {
      const json = JSON.parse(readFileSync(join(root, path), 'utf8')) as {
        name: string
        exports?: Record<string, { 'svc-source'?: string }>
      }
      return Object.entries(json.exports ?? {}).flatMap(([subpath, target]): [string, string[]][] =>
        target['svc-source'] === undefined
          ? []
          : [[`${json.name}${subpath.slice(1)}`, [join(root, path, '..', target['svc-source'])]]]
      )
    })
    mkdirSync(join(scratch, 'types'))
    writeFileSync(
      join(scratch, 'tsconfig.json'),
      JSON.stringify({
        extends: join(root, 'tsconfig.base.json'),
        compilerOptions: {
          noEmit: true,
          noUnusedLocals: false,
          // What `strict` says is what readers have; the stricter options are our own habits.
          noUncheckedIndexedAccess: false,
          exactOptionalPropertyTypes: false,
          paths: Object.fromEntries(exported),
          typeRoots: [join(root, 'node_modules/@types')]
        },
        files
      })
    )
    writeFileSync(join(scratch, 'package.json'), '{"type":"module"}')
    const tsc = join(root, 'node_modules/.bin/tsc')
    const { stdout } = await run(tsc, ['-p', scratch], { cwd: scratch }).catch((error: { stdout: string }) => error)
    expect(
      stdout
        .trim()
        .split('\n')
        .filter((line) => line !== '')
    ).toEqual([])
  } finally {
    rmSync(scratch, { recursive: true })
  }
})

/** The words after `svc` in each line of the shell blocks; comments and what follows a pipe are none. */
const commands = blocks
  .filter(({ language, isChecked }) => language === 'sh' && isChecked)
  .flatMap(({ page, code }) =>
    code.split('\n').flatMap((line) => {
      const match = /^(?:\$ )?(?:sudo )?(?:bin\/)?(svc|svcd)\s+([a-z-]+)(?:\s+([a-z]+))?/.exec(line)
      return match === null ? [] : [{ page, program: match[1] ?? '', words: [match[2] ?? '', match[3]] }]
    })
  )

const programs: Readonly<Record<string, string>> = {
  svc: 'packages/cli/src/main.ts',
  svcd: 'packages/daemon/src/app/main.ts'
}
const help = async (program: string, words: readonly string[]): Promise<string> => {
  const main = join(root, programs[program] ?? '')
  const { stdout } = await run(process.execPath, ['--conditions=svc-source', main, ...words, '--help'])
  return stdout
}

test('every svc command in the pages is one', async () => {
  expect(commands.length).toBeGreaterThan(5)
  const top = await help('svc', [])
  const names = new Set([...top.matchAll(/^ {2}([a-z]+)\b/gm)].map(([, name]) => name))
  // The guides are written ahead of the commands that they lead through: they join when those are here.
  const unknown = commands.filter(
    ({ page, program, words: [word = ''] }) => !page.startsWith('docs/guide/') && program === 'svc' && !names.has(word)
  )
  expect(unknown).toEqual([])
})

test('the files that the shell blocks of the checkout start are there', () => {
  const started = blocks
    .filter(({ language, isChecked }) => language === 'sh' && isChecked)
    .flatMap(({ code }) =>
      [...code.matchAll(/^(?:bin|scripts|packages|node_modules)\/[\w./-]+/gm)].map(([path]) => path)
    )
  expect(started).toContain('bin/svcd')
  expect(started.filter((path) => !existsSync(join(root, path)))).toEqual([])
})

test('the pnpm scripts that the pages name exist', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  const own = new Set(['exec', 'install', 'audit', 'dlx', ...Object.keys(scripts)])
  const named = blocks
    .filter(({ language, isChecked }) => language === 'sh' && isChecked)
    .flatMap(({ page, code }) =>
      [...code.matchAll(/^(?:npx --yes pnpm@10|pnpm) ([a-z:]+)/gm)].map(([, name]) => ({ page, name: name ?? '' }))
    )
  expect(named.length).toBeGreaterThan(3)
  expect(named.filter(({ name }) => !own.has(name))).toEqual([])
})
