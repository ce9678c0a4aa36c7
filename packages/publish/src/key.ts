import { encodePath } from '@svc/internal-http'

export const urlOf = (base: string, key: string): string =>
  `${base.endsWith('/') ? base : `${base}/`}${encodePath(key)}`
