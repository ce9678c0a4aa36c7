import type { DiskBlobStore } from '@svc/cas'

/**
 * Called before each request. Requests about jobs, and those that cancel them, need no store. Frequent requests check
 * only the root, and the folders if they find nothing. @throws CasError `E_STORE_GONE`, `E_IO`
 */
export function requireStore(store: Pick<DiskBlobStore, 'requireRoot' | 'check'>, url: string): void {
  if (/^\/v1\/(?:resolve|blob)\b/.test(url)) store.requireRoot()
  else if (url.startsWith('/v1/') && !url.startsWith('/v1/jobs')) store.check()
}
