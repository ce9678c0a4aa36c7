// What is wrong with a tarball that would be published.
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { checkPackage, createPackageFromTarballData, type ResolutionKind } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { staleFiles } from '../scripts/built-files.ts'
import { type PackageJson, readPackageJson } from './tarballs.ts'

const run = promisify(execFile)

/** Resolutions that our users have: packages are ES modules, for Node and bundlers. */
const isEsm = (kind: ResolutionKind): boolean => kind === 'node16-esm' || kind === 'bundler'

/** What publint has to say: `code: sentence`. */
export async function publintFaults(tarball: string): Promise<string[]> {
  const { messages, pkg } = await publint({
    pack: { tarball: new Uint8Array(readFileSync(tarball)).buffer },
    strict: true
  })
  return messages.map((message) => `${message.code}: ${formatMessage(message, pkg ?? {})}`)
}

/** Entries whose types a user would not get, or get wrong (attw): `kind entry`. */
export async function typeFaults(tarball: string): Promise<string[]> {
  const analysis = await checkPackage(createPackageFromTarballData(new Uint8Array(readFileSync(tarball))))
  if (!analysis.types) return ['NoTypes']
  return analysis.problems
    .filter((problem) => !('resolutionKind' in problem) || isEsm(problem.resolutionKind))
    .map((problem) => ('entrypoint' in problem ? `${problem.kind} ${problem.entrypoint}` : problem.kind))
}

const LOCAL_RANGE = /^(?:workspace|file|link|catalog):/
const MAY_HOLD =
  /^(?:(?:bin|dist|src)\/.*|units\/svc[a-z-]*\.(?:service|socket|timer)|package\.json|README\.md|LICENSE|CHANGELOG\.md)$/

const hasSection = (file: string, title: string): boolean =>
  existsSync(file) && readFileSync(file, 'utf8').includes(`\n## ${title}\n`)

/**
 * What the tarball lacks or should not hold, as sentences.
 * @param unpacked an empty folder, for its files
 * @param folder below `packages`
 */
export async function contentFaults(tarball: string, unpacked: string, folder: string): Promise<string[]> {
  await run('tar', ['-xzf', tarball, '-C', unpacked, '--strip-components=1'])
  const files = readdirSync(unpacked, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) => join(parentPath, name).slice(unpacked.length + 1))
  const json = readPackageJson(unpacked)
  const targets = [
    ...Object.values(json.bin ?? {}),
    ...Object.values(json.exports ?? {}).flatMap((entry) => (typeof entry === 'string' ? entry : Object.values(entry)))
  ]
  return [
    ...['README.md', 'LICENSE'].filter((file) => !files.includes(file)).map((file) => `${file} is missing`),
    ...(hasSection(join(unpacked, 'README.md'), 'Stability') ? [] : ['README.md does not say what is stable']),
    ...files.filter((file) => !MAY_HOLD.test(file)).map((file) => `${file} is not for users`),
    ...staleFiles(unpacked).map((file) => `${file} is of another build`),
    ...targets
      .filter((target) => !existsSync(join(unpacked, target)))
      .map((target) => `${target} is named, but absent`),
    ...Object.entries(json.dependencies ?? {})
      .filter(([, range]) => LOCAL_RANGE.test(range))
      .map(([name, range]) => `${name} is ${range}`),
    ...Object.values(json.bin ?? {})
      .filter(
        (bin) =>
          existsSync(join(unpacked, bin)) &&
          !/^#!\/usr\/bin\/env (?:node\n|sh\n':' \/\/; exec node )/.test(readFileSync(join(unpacked, bin), 'utf8'))
      )
      .map((bin) => `${bin} does not begin with #!/usr/bin/env node`),
    ...manifestFaults(json, folder)
  ]
}

const manifestFaults = (json: PackageJson, folder: string): string[] =>
  Object.entries({
    license: json.license === 'Apache-2.0',
    'engines.node': /^>=22/.test(json.engines?.node ?? ''),
    author: typeof json.author === 'string',
    homepage: json.homepage?.includes(`/packages/${folder}#`) === true,
    'repository.directory': json.repository?.directory === `packages/${folder}`,
    bugs: /^https:/.test(json.bugs ?? ''),
    keywords: (json.keywords?.length ?? 0) > 0,
    'files with CHANGELOG.md': json.files?.includes('CHANGELOG.md') === true,
    sideEffects: json.sideEffects !== undefined
  })
    .filter(([, isSound]) => !isSound)
    .map(([field]) => `package.json lacks ${field}`)
