import { serveCalls } from '@svc/internal-workers'
import { createView, readView, removeView } from '@svc/view'
import { type ViewCalls, viewErrors } from './view-calls.ts'

serveCalls<ViewCalls>(
  {
    create: ({ manifest, manifestDigest, upstreamConfig, companions, blobPaths, ...options }, { signal, progress }) =>
      createView(
        { manifest, manifestDigest, upstreamConfig, companions, blobPath: (digest) => blobPaths.get(digest) ?? '' },
        { ...options, signal, onCopied: progress }
      ),
    read: (path) => readView(path),
    remove: ({ path, model }) => removeView(path, model)
  },
  { errors: viewErrors }
)
