/** The folder of the built page: a `file:` URL that ends with `/`, the same from the sources and from the build. */
export const DIRECTORY: URL = new URL('.', new URL('../dist/page/app.js', import.meta.url))

/** The page's files in {@link DIRECTORY} and their content types. All URLs in them are relative. */
export const FILES: Readonly<Record<string, string>> = {
  'index.html': 'text/html; charset=utf-8',
  'app.js': 'text/javascript; charset=utf-8',
  'page.css': 'text/css; charset=utf-8',
  'icon.svg': 'image/svg+xml'
}
