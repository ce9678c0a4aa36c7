import { fstatSync } from 'node:fs'
import type { FileIdentity } from './store.ts'

/** The identity of an open file now. @throws system errors */
export const identityOf = (fd: number): FileIdentity & { isFile(): boolean } => fstatSync(fd, { bigint: true })

export const isSame = (one: FileIdentity, other: FileIdentity): boolean =>
  one.dev === other.dev &&
  one.ino === other.ino &&
  one.size === other.size &&
  one.mtimeNs === other.mtimeNs &&
  one.ctimeNs === other.ctimeNs
