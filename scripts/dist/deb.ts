// A Debian package, deb(5): an ar archive of control and data.
import { createHash } from 'node:crypto'
import { ar, gzip, tar } from './pack.ts'
import type { Project } from './product.ts'
import { FileTree } from './tree.ts'

type DebianArchitecture = 'amd64' | 'arm64'

export interface DebianPackage {
  readonly version: string
  readonly architecture: DebianArchitecture
  /** Who answers for it, and where the project lives. */
  readonly project: Project
  /** What lies below `/usr`. */
  readonly usr: FileTree
}

export const debName = ({ version, architecture }: Pick<DebianPackage, 'version' | 'architecture'>): string =>
  `svc_${version}_${architecture}.deb`

/** The bytes of the package. No scripts of the maintainer's run at its installation: what starts is for each user to say. */
export function debianPackage({ version, architecture, project, usr }: DebianPackage): Buffer {
  const data = usr.below('usr')
  data.add('usr/share/doc/svc/copyright', COPYRIGHT)
  const control = new FileTree()
  control.add(
    'control',
    [
      'Package: svc',
      `Version: ${version}`,
      `Architecture: ${architecture}`,
      `Maintainer: ${project.maintainer}`,
      'Section: utils',
      'Priority: optional',
      // what the Node that comes along is linked with.
      'Depends: libc6 (>= 2.28), libstdc++6 (>= 8), libgcc-s1 | libgcc1',
      `Installed-Size: ${Math.ceil(data.sizeBytes / 1024)}`,
      `Homepage: ${project.homepage}`,
      'Description: local store of machine learning models',
      ' One verified copy of every model on this machine, for all tools that run models.',
      ' svcd keeps models as blobs that are named by their SHA-256; svc is its command line.',
      ''
    ].join('\n')
  )
  const sums = data
    .entries()
    .flatMap((entry) =>
      'content' in entry ? [`${createHash('md5').update(entry.content).digest('hex')}  ${entry.path}\n`] : []
    )
  control.add('md5sums', sums.join(''))
  return ar([
    ['debian-binary', Buffer.from('2.0\n')],
    ['control.tar.gz', gzip(tar(control, './'))],
    ['data.tar.gz', gzip(tar(data, './'))]
  ])
}

const COPYRIGHT = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
Copyright: the authors of svc
License: Apache-2.0
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.

Files: /usr/lib/svc/node
Copyright: Node.js contributors, and others as its licence lists them
License: Expat-and-others
 See /usr/share/doc/svc/LICENSE-NODE.

Files: /usr/lib/svc/node_modules/*
Copyright: the authors of each package
License: various
 The text of each licence lies in the folder of its package.
`
