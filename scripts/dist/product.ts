// The files of an installation below its prefix: programs, libraries, man pages, completions, units.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SCRIPTS } from '../../packages/cli/src/completion/scripts.ts'
import { DAEMON_NODE_FLAGS } from '../../packages/cli/src/service/daemon-command.ts'
import { systemdUnits } from '../../packages/internal/services/src/units.ts'
import { svcdPage, svcPage } from './man.ts'
import { collectModules } from './modules.ts'
import { gzip } from './pack.ts'
import type { Runtime } from './runtimes.ts'
import type { FileTree } from './tree.ts'

/** The programs, and what each starts. */
const PROGRAMS = { svc: '@svc/cli/bin/svc.cjs', svcd: '@svc/daemon/bin/svcd.cjs' } as const

/** Finds the files beside it, through links, and becomes the Node that came along: signals reach the program itself. */
const launcher = (entry: string, flags: readonly string[]): string => `#!/bin/sh
self=$0
while [ -L "$self" ]; do
  target=$(readlink "$self")
  case $target in
    /*) self=$target ;;
    *) self=$(dirname -- "$self")/$target ;;
  esac
done
lib=$(CDPATH='' cd -- "$(dirname -- "$self")/../lib/svc" && pwd -P) || exit 1
exec ${['"$lib/node"', ...flags].join(' ')} "$lib/node_modules/${entry}" "$@"
`

export const versionOf = (root: string): string =>
  (JSON.parse(readFileSync(join(root, 'packages/cli/package.json'), 'utf8')) as { version: string }).version

export interface Project {
  /** A name and an address, as Debian wants them. */
  readonly maintainer: string
  readonly homepage: string
}

/** As the manifests of the packages have it; the address is the one that the forge of the repository gives its owner. */
export function projectOf(root: string): Project {
  const { author, repository } = JSON.parse(readFileSync(join(root, 'packages/cli/package.json'), 'utf8')) as {
    author: string
    repository: { url: string }
  }
  const { host, pathname } = new URL(repository.url.replace(/^git\+/, ''))
  const path = pathname.replace(/\.git$/, '')
  return { maintainer: `${author} <${path.split('/')[1]}@users.noreply.${host}>`, homepage: `https://${host}${path}` }
}

/** Where things lie that systems disagree about. */
export interface Layout {
  readonly units: string
  /** What the units start. */
  readonly svcd: string
  readonly svc: string
  readonly zsh: string
  readonly compressed: boolean
}

/** For a prefix of one's own. */
export const ARCHIVE: Layout = {
  units: 'share/svc/systemd/user',
  svcd: '/usr/bin/env svcd',
  svc: '/usr/bin/env svc',
  zsh: 'share/zsh/site-functions',
  compressed: false
}

/** For `/usr` of a Debian system. */
export const DEBIAN: Layout = {
  units: 'lib/systemd/user',
  svcd: '/usr/bin/svcd',
  svc: '/usr/bin/svc',
  zsh: 'share/zsh/vendor-completions',
  compressed: true
}

/** The whole product for one platform, from the built workspace at `root`. */
export function product(root: string, runtime: Runtime, layout: Layout): FileTree {
  const version = versionOf(root)
  const tree = collectModules(root, ['@svc/cli', '@svc/daemon']).below('lib/svc')
  tree.add('lib/svc/node', runtime.node, true)
  for (const [name, entry] of Object.entries(PROGRAMS))
    tree.add(`bin/${name}`, launcher(entry, name === 'svcd' ? DAEMON_NODE_FLAGS : []), true)
  const man = (path: string, text: string): void =>
    layout.compressed ? tree.add(`${path}.gz`, gzip(Buffer.from(text))) : tree.add(path, text)
  man('share/man/man1/svc.1', svcPage(version))
  man('share/man/man8/svcd.8', svcdPage(version))
  tree.add('share/bash-completion/completions/svc', SCRIPTS.bash)
  tree.add(`${layout.zsh}/_svc`, SCRIPTS.zsh)
  tree.add('share/fish/vendor_completions.d/svc.fish', SCRIPTS.fish)
  const units = systemdUnits(layout.svcd.split(' '), layout.svc.split(' '), join(root, 'packages/cli/units'))
  for (const [name, text] of Object.entries(units)) tree.add(`${layout.units}/${name}`, text)
  tree.add('share/doc/svc/LICENSE', readFileSync(join(root, 'LICENSE')))
  tree.add('share/doc/svc/LICENSE-NODE', runtime.licence)
  tree.add('share/doc/svc/README.md', readFileSync(join(root, 'README.md')))
  return tree
}
