export { isExecutable, programInPath } from './executables.ts'
export {
  type FilePort,
  type FilePortFactory,
  type FilePortModule,
  type FileStat,
  loadFilePort,
  nodeFilePort
} from './file-port.ts'
export { isRunning, processStart, thisMachine, tryFlock } from './flock.ts'
export { DurableFolders, makeFolders, makeFoldersSync, syncFolder, syncFolderSync } from './folder.ts'
export { type CopyInput, type CopyOptions, copyVerified, readChunks, readFully, writeAt } from './handle.ts'
export { isLinkRefused } from './link-refused.ts'
export { listFolder, listFolderIfPresent } from './listing.ts'
export { fileSystemType } from './mounts.ts'
export {
  holdOffOnNetworkFileSystem,
  isOnFileSystem,
  isOnNetworkFileSystem,
  NETWORK_FILE_SYSTEMS
} from './network-file-system.ts'
export { errnoName, isNoSpace } from './no-space.ts'
export { claimFolder, NOT_REGULAR, openPartial, openRegular, openSized, tryClaim, writePartial } from './open-file.ts'
export { ownTemporaryFolder } from './own-temporary-folder.ts'
export { QuickReads } from './quick-reads.ts'
export { replaceFile, TEMPORARY_FILE } from './replace-file.ts'
export { requireWritable, rewriteFile } from './rewrite-file.ts'
export { dropFromCache } from './uncached.ts'
export { readUpTo, readUpToSync, readWhole, readWindow, writeFully, writeFullySync } from './whole.ts'
