import { type ImportOciBody, type Job, ROUTES } from '@svc/client/protocol'
import { defineRoute } from '../route.ts'

/** Imports of OCI artifacts. */
export interface OciArtifactImports {
  importOci(body: ImportOciBody): Promise<Job>
}

export const importOciRoute = ({ oci }: { readonly oci: OciArtifactImports }) =>
  defineRoute(ROUTES.importOci, ({ body }) => oci.importOci(body))
