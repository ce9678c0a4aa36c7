import { join } from 'node:path'
import { backUp, openBackup, openTarget, type StoreSnapshot } from '@svc/publish'
import type { Sha256Digest } from '@svc/ref'
import { restoreStore } from '../../../library/src/copying/restore-store.ts'
import type { Node } from '../swarm/nodes.ts'
import { temporaryFolder } from './daemon.ts'

/**
 * Backs a node up, and restores it in another folder. @param change what somebody else makes of the backup meanwhile
 * @returns that folder
 */
export async function restored(
  node: Pick<Node, 'folder' | 'client' | 'blobPath'>,
  change: (snapshot: StoreSnapshot) => StoreSnapshot = (snapshot) => snapshot
): Promise<string> {
  const to = join(node.folder, 'backup')
  const snapshot = await node.client.makeSnapshot()
  const target = await openTarget({ kind: 'folder', path: to }, { isPrivate: true })
  await backUp(target, { snapshotPath: snapshot.path, blobPath: (digest: Sha256Digest) => node.blobPath(digest) })
  await target.close()
  await node.client.releaseSnapshot(snapshot.id)
  const folder = temporaryFolder()
  const backup = await openBackup(await openTarget({ kind: 'folder', path: to }, { readOnly: true }))
  await restoreStore({
    backup: { ...backup, snapshot: change(backup.snapshot) },
    from: to,
    root: join(folder, 'root'),
    incomplete: false,
    signal: new AbortController().signal,
    onProgress: () => undefined
  })
  return folder
}
