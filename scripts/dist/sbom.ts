// What a release consists of, as CycloneDX 1.6 has it.
import type { FileTree } from './tree.ts'

interface Component {
  readonly name: string
  readonly version: string
  readonly licence?: string | undefined
}

/** The title of a licence text in THIRD-PARTY-LICENSES: `name@version (licence)`, after a rule. */
const BUNDLED = /^(?<name>@?[^@\s]+)@(?<version>\d[^\s]*) \((?<licence>.+)\)$/gm

/** Packages as they are installed, and those whose code is bundled into ours. */
function componentsIn(tree: FileTree): Component[] {
  const found = new Map<string, Component>()
  for (const entry of tree.entries()) {
    if ('link' in entry) continue
    if (/(?:^|\/)node_modules\/(?:@[^/]+\/)?[^/]+\/package\.json$/.test(entry.path)) {
      const { name, version, license } = JSON.parse(entry.content.toString()) as Record<string, string>
      found.set(`${name}@${version}`, { name: name!, version: version!, licence: license })
    } else if (entry.path.endsWith('/THIRD-PARTY-LICENSES'))
      for (const { groups } of entry.content.toString().matchAll(BUNDLED)) {
        const { name, version, licence } = groups as { name: string; version: string; licence: string }
        if (!found.has(`${name}@${version}`)) found.set(`${name}@${version}`, { name, version, licence })
      }
  }
  return [...found.values()].sort((a, b) => (`${a.name}@${a.version}` < `${b.name}@${b.version}` ? -1 : 1))
}

const purlOf = ({ name, version }: Pick<Component, 'name' | 'version'>): string =>
  `pkg:npm/${name.replace(/^@/, '%40')}@${version}`

const licencesOf = ({ licence }: Component) =>
  licence === undefined ? {} : { licenses: [{ license: { name: licence } }] }

/** The same tree gives the same bytes: no time and no serial number. */
export function sbomOf(tree: FileTree, { version, node }: { readonly version: string; readonly node: string }): Buffer {
  const components = componentsIn(tree).map((each) => ({
    type: 'library',
    'bom-ref': purlOf(each),
    name: each.name,
    version: each.version,
    purl: purlOf(each),
    ...licencesOf(each)
  }))
  const runtime = { type: 'platform', 'bom-ref': `pkg:generic/node@${node}`, name: 'node', version: node }
  const bom = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type: 'application', 'bom-ref': `svc@${version}`, name: 'svc', version } },
    components: [...components, runtime]
  }
  return Buffer.from(`${JSON.stringify(bom, null, 2)}\n`)
}
