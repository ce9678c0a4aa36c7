import type { DiskBlobStore } from '@svc/cas'

/**
 * Called before each request. What tells about jobs, or cancels them, needs no store. Those that are asked thousands of
 * times a second look at the root alone, and at the folders only if they find nothing. @throws CasError `E_STORE_GONE`,
 * `E_IO`
 */
export function requireStore(store: Pick<DiskBlobStore, 'requireRoot' | 'check'>, url: string): void {
  if (/^\/v1\/(?:resolve|blob)\b/.test(url)) store.requireRoot()
  else if (url.startsWith('/v1/') && !url.startsWith('/v1/jobs')) store.check()
}
