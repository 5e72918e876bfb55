/** One HTML page of these books, what is left to read first. */
export function renderPage(books, style) {
  const left = books.filter(book => !book.read)
  const read = books.filter(book => book.read)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Reading list</title>
<style>
${style}</style>
</head>
<body>
<h1>Reading list</h1>
${section('Left to read', left)}
${section('Read', read)}
</body>
</html>
`
}

function section(heading, books) {
  if (books.length === 0) return `<h2>${heading}</h2>\n<p>Nothing.</p>`
  return `<h2>${heading}</h2>\n<ul>\n${books.map(entry).join('\n')}\n</ul>`
}

function entry({ title, author, year }) {
  const when = year === undefined ? '' : ` (${year})`
  return `<li><cite>${title}</cite>, ${author}${when}</li>`
}
