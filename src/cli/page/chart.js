/*
 * Elements and line charts. Text from files reaches the page as text nodes only, never as markup. A chart is drawn at the width that it
 * has, so that its letters have one size on every screen; pointer and arrow keys move along its points.
 */
const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
        if (typeof value === 'function') {
            element.addEventListener(name, value);
        } else if (value !== null && value !== undefined && value !== false) {
            element.setAttribute(name, value === true ? '' : value);
        }
    }
    for (const child of children.flat(Infinity)) {
        if (child !== null && child !== undefined && child !== false) {
            element.append(child instanceof Node ? child : String(child));
        }
    }
    return element;
}

function el(name, attributes, ...children) {
    return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes, ...children) {
    return fill(document.createElementNS(SVG, name), attributes, children);
}

/* ---- Numbers as text ---- */

function is(value) {
    return typeof value === 'number' && isFinite(value);
}

function number(value, digits = 4) {
    if (!is(value)) {
        return '–';
    }
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-4 || size >= 1e9)) {
        return value.toExponential(Math.max(0, digits - 2));
    }
    return value.toLocaleString('en', size >= 1000 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: digits });
}

/* For axes: 25K in place of 25,000. */
function short(value) {
    return Math.abs(value) < 1e3 ? number(value, 3) : value.toLocaleString('en', { notation: 'compact', maximumSignificantDigits: 3 });
}

function bytes(value) {
    if (!is(value)) {
        return '–';
    }
    const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
    let unit = 0;
    for (; value >= 1024 && unit < units.length - 1; unit++) {
        value /= 1024;
    }
    return (unit === 0 ? value : value.toFixed(1)) + ' ' + units[unit];
}

function duration(seconds) {
    if (!is(seconds)) {
        return '–';
    }
    const minutes = Math.floor(seconds / 60);
    return seconds < 1e-3 ? number(seconds * 1e6, 3) + ' µs' : seconds < 1 ? number(seconds * 1e3, 3) + ' ms'
        : seconds < 100 ? number(seconds, 3) + ' s'
        : minutes < 60 ? minutes + ' min ' + Math.round(seconds % 60) + ' s'
        : Math.floor(minutes / 60) + ' h ' + minutes % 60 + ' min';
}

function percent(share, digits = 1) {
    return is(share) ? (100 * share).toFixed(digits) + '\u00a0%' : '–';
}

/* ---- Axes ---- */

/* Ticks at 1, 2 or 5 times a power of ten. */
function ticks(low, high, wanted, whole) {
    const raw = (high - low) / Math.max(1, wanted), power = Math.pow(10, Math.floor(Math.log10(raw))), rest = raw / power;
    let step = power * (rest < 1.5 ? 1 : rest < 3.5 ? 2 : rest < 7.5 ? 5 : 10);
    step = whole ? Math.max(1, Math.round(step)) : step;
    const made = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9 && made.length < 50; k++) {
        made.push(k * step || 0);
    }
    return made;
}

/* The range of values, from zero where that costs little; with `log`, whole powers of ten mark it. */
function range(series, log) {
    let low = Infinity, high = -Infinity;
    for (const s of series) {
        for (const y of s.points.flatMap(p => p.slice(1))) {
            if (is(y) && (!log || y > 0)) {
                low = Math.min(low, y);
                high = Math.max(high, y);
            }
        }
    }
    if (!isFinite(low)) {
        return log ? [0.1, 1] : [0, 1];
    }
    if (log) {
        return low === high ? [low / 2, high * 2] : [low / 1.1, high * 1.1];
    }
    if (low > 0 && low < 0.35 * high) {
        low = 0;
    }
    const room = high > low ? 0.04 * (high - low) : Math.abs(high) / 2 || 0.5;
    return [low === 0 ? 0 : low - room, high + room];
}

function logTicks(low, high) {
    const made = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
        for (const m of Math.log10(high / low) < 2 ? [1, 2, 5] : [1]) {
            const value = m * Math.pow(10, e);
            if (value >= low && value <= high) {
                made.push(value);
            }
        }
    }
    return made;
}

function nearest(points, x) {
    let low = 0, high = points.length - 1;
    while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (points[middle][0] < x) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return points.length && Math.abs(points[high][0] - x) < Math.abs(points[low][0] - x) ? high : low;
}

function endsOf(series) {
    return series.filter(c => c.points.length).flatMap(c => [c.points[0][0], c.points[c.points.length - 1][0]]);
}

/* ---- The chart ---- */

const chartsOfPage = [];
const announcer = el('div', { class: 'sr', role: 'status', 'aria-live': 'polite' });

/* spec(): { series: [{ name, color, dashed, faint, points: [[x, y], ...] }], x: 'epoch', log }. It is asked again at every drawing. A series
 * that is a band has points [x, low, high], where no high is the upper edge. Optional: between, a list of x that the axis holds; ticks,
 * [[x, text], ...]; where, which names an x; marks, [[x, text], ...], which are lines from the bottom to the top. */
function chart(title, spec, format = number) {
    const plot = el('div', { class: 'plot' }), keys = el('span', { class: 'keys' });
    const figure = el('figure', { class: 'chart' }, el('figcaption', {}, title, keys), plot);
    const it = { figure, at: null };
    const M = { left: 52, right: 10, top: 8, bottom: 34 }, H = 220;

    it.draw = function () {
        const width = Math.max(220, Math.floor(plot.clientWidth || 460)), s = spec(), series = s.series.filter(c => c.points.length);
        const xs = endsOf(series).concat(series.length ? s.between || [] : []);
        let x0 = Math.min(...xs), x1 = Math.max(...xs);
        if (!(x1 > x0)) {
            x0 = (xs.length ? x0 : 1) - 0.5;
            x1 = x0 + 1;
        }
        const log = s.log && series.every(c => c.points.every(p => p[1] > 0)), [y0, y1] = range(series, log);
        const px = x => M.left + (width - M.left - M.right) * (x - x0) / (x1 - x0);
        const share = log ? y => Math.log(y / y0) / Math.log(y1 / y0) : y => (y - y0) / (y1 - y0);
        const py = y => M.top + (H - M.top - M.bottom) * (1 - share(y));
        const summary = series.filter(c => !c.faint && !c.band).map(c => c.name + ': ' + format(c.points[0][1]) + ' to ' +
            format(c.points[c.points.length - 1][1])).join('; ');
        const drawing = svg('svg', { width, height: H, role: 'img', tabindex: 0,
            'aria-label': title + ' by ' + s.x + '. ' + summary + '. Arrow keys read the points.' });
        for (const y of log ? logTicks(y0, y1) : ticks(y0, y1, 4)) {
            drawing.append(svg('line', { class: 'grid', x1: M.left, x2: width - M.right, y1: py(y), y2: py(y) }),
                svg('text', { x: M.left - 8, y: py(y) + 4, 'text-anchor': 'end' }, short(Math.abs(y) < 1e-12 ? 0 : y)));
        }
        drawing.append(svg('line', { class: 'axis', x1: M.left, x2: width - M.right, y1: H - M.bottom, y2: H - M.bottom }));
        const every = s.ticks ? Math.ceil(s.ticks.length * 44 / (width - M.left - M.right)) : 1;
        for (const [x, label] of s.ticks ? s.ticks.filter((_, k) => k % every === 0) : ticks(x0, x1, width / 90, true).map(t => [t, short(t)])) {
            drawing.append(svg('text', { x: px(x), y: H - M.bottom + 16, 'text-anchor': 'middle' }, label));
        }
        (s.marks || []).forEach(([x, label], k) => {
            const right = px(x) > width / 2;
            drawing.append(svg('line', { class: 'mark', x1: px(x), x2: px(x), y1: M.top, y2: H - M.bottom }),
                svg('text', { x: px(x) + (right ? -5 : 5), y: M.top + 10 + 14 * k, 'text-anchor': right ? 'end' : 'start' }, label));
        });
        drawing.append(svg('text', { x: (M.left + width - M.right) / 2, y: H - 3, 'text-anchor': 'middle' }, s.x));
        for (const c of series.filter(b => b.band)) {
            const edge = y => is(y) ? py(y).toFixed(1) : M.top, to = (x, y) => px(x).toFixed(1) + ' ' + edge(y);
            drawing.append(svg('path', { class: 'band', style: 'fill:' + c.color,
                d: 'M' + [...c.points.map(p => to(p[0], p[1])), ...c.points.map(p => to(p[0], p[2])).reverse()].join('L') + 'Z' }));
        }
        for (const c of series.filter(b => !b.band)) {
            const d = c.points.map((p, k) => (k ? 'L' : 'M') + px(p[0]).toFixed(1) + ' ' + py(p[1]).toFixed(1)).join('');
            drawing.append(svg('path', { class: 'curve' + (c.faint ? ' faint' : '') + (c.dashed ? ' dashed' : ''), d,
                style: 'stroke:' + c.color }));
            if (!c.faint && c.points.length <= 40) {
                for (const p of c.points) {
                    drawing.append(svg('circle', { cx: px(p[0]), cy: py(p[1]), r: 2.2, style: 'fill:' + c.color }));
                }
            }
        }
        const over = svg('g', {}), shown = series.filter(c => !c.faint && !c.band), lead = (shown.length ? shown : series)
            .reduce((a, b) => (b.points.length > a.points.length ? b : a), { points: [] });
        drawing.append(over);
        const tip = el('div', { class: 'tip', hidden: true });
        const names = shown.filter(c => c.name !== title);
        keys.replaceChildren(...names.map(c => el('span', { class: 'key' }, el('i', { class: c.dashed ? 'dashed' : null,
            style: 'border-color:' + c.color }), c.name, ' ')));

        function show(index) {
            it.at = Math.max(0, Math.min(lead.points.length - 1, index));
            const x = lead.points[it.at][0];
            over.replaceChildren(svg('line', { class: 'cross', x1: px(x), x2: px(x), y1: M.top, y2: H - M.bottom }));
            const lines = [];
            for (const c of shown.length ? shown : series) {
                const p = c.points[nearest(c.points, x)];
                over.append(svg('circle', { class: 'dot', cx: px(p[0]), cy: py(p[1]), r: 4, style: 'fill:' + c.color }));
                lines.push(el('span', {}, el('i', { style: 'background:' + c.color }), c.name, el('em', {}, format(p[1]))));
            }
            for (const c of series.filter(b => b.band)) {
                const p = c.points[nearest(c.points, x)];
                lines.push(el('span', {}, el('i', { style: 'background:' + c.color }), c.name, el('em', {}, format(p[1]) + ' to ' + (is(p[2]) ? format(p[2]) : '?'))));
            }
            const where = s.where ? s.where(x) : s.x + ' ' + number(x, 6);
            tip.replaceChildren(el('b', {}, where), ...lines);
            tip.hidden = false;
            const left = px(x) + 14, flip = left + tip.offsetWidth > width;
            tip.style.left = Math.max(0, flip ? px(x) - 14 - tip.offsetWidth : left) + 'px';
            tip.style.top = M.top + 'px';
            return where + ': ' + lines.map(l => l.textContent).join(', ');
        }
        function hide() {
            it.at = null;
            tip.hidden = true;
            over.replaceChildren();
        }
        if (lead.points.length) {
            drawing.addEventListener('pointermove', e => {
                const at = x0 + (x1 - x0) * (e.clientX - drawing.getBoundingClientRect().left - M.left) / (width - M.left - M.right);
                show(nearest(lead.points, at));
            });
            drawing.addEventListener('pointerleave', hide);
            drawing.addEventListener('blur', hide);
            drawing.addEventListener('keydown', e => {
                const last = lead.points.length - 1, from = it.at === null ? -1 : it.at;
                const to = { ArrowRight: from + 1, ArrowLeft: it.at === null ? last : from - 1, Home: 0, End: last }[e.key];
                if (to !== undefined) {
                    announcer.textContent = show(to);
                    e.preventDefault();
                } else if (e.key === 'Escape') {
                    hide();
                }
            });
        }
        const focused = plot.contains(document.activeElement), kept = it.at;
        plot.replaceChildren(drawing, tip);
        if (focused) {
            drawing.focus();
        }
        if (kept !== null && lead.points.length) {
            show(kept);
        }
    };
    chartsOfPage.push(it);
    return it;
}

/* Draws charts when they get a place, and again when that changes its width. */
const observer = new ResizeObserver(entries => {
    for (const entry of entries) {
        const it = chartsOfPage.find(c => c.figure === entry.target), width = Math.round(entry.contentRect.width);
        if (it && it.width !== width) {
            it.width = width;
            it.draw();
        }
    }
});

/* A table that is made when it is opened: the same numbers for those who cannot see the picture. */
function tableOf(summary, key, head, rows) {
    const made = el('details', { 'data-key': key, toggle: () => {
        if (made.open && made.children.length === 1) {
            made.append(table(head, rows()));
        }
    } }, el('summary', {}, summary));
    return made;
}

function isLeft(rows, column) {
    const cell = rows.length ? rows[0][column] : null;
    return cell instanceof HTMLTableCellElement && cell.classList.contains('left');
}

function table(head, rows, caption) {
    return el('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': caption || head.join(', ') },
        el('table', {}, caption ? el('caption', {}, caption) : null,
            el('thead', {}, el('tr', {}, head.map((h, k) => el('th', { scope: 'col', class: isLeft(rows, k) ? 'left' : null }, h)))),
            el('tbody', {}, rows.map(row => el('tr', {}, row.map((cell, k) => k === 0 ? el('th', { scope: 'row', class: 'left' }, cell)
                : cell instanceof HTMLTableCellElement ? cell : el('td', {}, cell)))))));
}
