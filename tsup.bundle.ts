// Third-party packages that are bundled into ours: without what is never used of them, and with their licences.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Options } from 'tsup'

type Plugin = NonNullable<Options['esbuildPlugins']>[number]

export interface Bundled {
  /** Packages that go into the bundle, with all that they import. */
  readonly packages: readonly string[]
  /**
   * JavaScript that takes the place of a module, by the specifier that it is imported with: for parts that are switched
   * off at run time and would bring native code, install scripts or megabytes along.
   */
  readonly stubs?: Readonly<Record<string, string>>
  /** Some of them `require` Node's own modules. */
  readonly node?: boolean
}

/**
 * tsup options that bundle packages. Writes `dist/THIRD-PARTY-LICENSES` from what really ended up in the output, and
 * fails where a package has no licence text.
 */
export const bundling = ({ packages, stubs = {}, node = false }: Bundled): Options => ({
  noExternal: [/^@svc\/internal-/, ...packages],
  // CommonJS packages `require` built-in modules; an ES module has no `require` of its own.
  ...(node && {
    banner: {
      js: "import { createRequire as svcCreateRequire } from 'node:module'; const require = svcCreateRequire(import.meta.url);"
    }
  }),
  esbuildPlugins: [replaced(stubs), licences(packages)]
})

function replaced(stubs: NonNullable<Bundled['stubs']>): Plugin {
  return {
    name: 'stubs',
    setup(build) {
      build.onResolve({ filter: /.*/ }, ({ path }) =>
        Object.hasOwn(stubs, path) ? { path, namespace: 'stub' } : undefined
      )
      build.onLoad({ filter: /.*/, namespace: 'stub' }, ({ path }) => ({ contents: stubs[path]!, loader: 'js' }))
    }
  }
}

function licences(packages: Bundled['packages']): Plugin {
  return {
    name: 'licences',
    setup(build) {
      build.initialOptions.metafile = true
      build.onEnd(({ metafile }) => {
        const folders = new Set<string>()
        for (const { inputs } of Object.values(metafile?.outputs ?? {})) {
          for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
            if (path.includes('node_modules/') && bytesInOutput > 0) folders.add(packageFolder(resolve(path)))
          }
        }
        const texts = [...folders].map(licenceOf).sort(([a], [b]) => (a < b ? -1 : 1))
        for (const name of packages) {
          if (!texts.some(([title]) => title.startsWith(`${name}@`))) throw new Error(`${name} is not in the bundle`)
        }
        mkdirSync('dist', { recursive: true })
        writeFileSync(
          'dist/THIRD-PARTY-LICENSES',
          `${[HEADER, ...new Map(texts).values()].join(`\n${'-'.repeat(80)}\n\n`)}`
        )
      })
    }
  }
}

const HEADER = `This package contains code of the packages below, under the licences given with each. They were bundled, so that it
installs without a compiler and without install scripts.
`

/** The folder of the nearest manifest that names a package: some packages have bare ones in their subfolders. */
function packageFolder(path: string): string {
  for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder)) {
    const manifest = join(folder, 'package.json')
    if (
      existsSync(manifest) &&
      (JSON.parse(readFileSync(manifest, 'utf8')) as { name?: string; version?: string }).version
    )
      return folder
  }
  throw new Error(`${path} belongs to no package`)
}

function licenceOf(folder: string): readonly [string, string] {
  const { name, version, license, licenses } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    readonly name: string
    readonly version: string
    readonly license?: string
    /** How old manifests say it. */
    readonly licenses?: readonly { readonly type: string }[]
  }
  const stated = license ?? licenses?.map(({ type }) => type).join(' or ')
  const files = readdirSync(folder)
    .filter((file) => /^(licen[cs]e|copying|notice)/i.test(file))
    .sort()
  // some state the licence at the end of their README.
  const readme = readdirSync(folder).find((file) => /^readme\.md$/i.test(file))
  const inReadme = readme && /^#+ licen[cs]e\s*$([\s\S]*)/im.exec(readFileSync(join(folder, readme), 'utf8'))?.[1]
  const text =
    files.length > 0
      ? files.map((file) => readFileSync(join(folder, file), 'utf8').trim()).join('\n\n')
      : inReadme?.trim()
  if (text === undefined && stated === undefined) throw new Error(`${name} has no licence: it cannot be bundled`)
  const title = `${name}@${version}`
  return [title, `${title} (${stated ?? 'as below'})\n\n${text ?? `Licensed under ${stated}.`}\n`]
}
