//! Figures as files: SVG, PDF whose text stays text, and PNG.
//!
//! PDF and PNG use the fonts next to this file, whatever fonts a system has, so the same figure
//! has the same bytes everywhere.

use std::path::Path;

use super::Drawing;
use super::canvas::FAMILIES;
use crate::ReportError;

/// A format of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// SVG.
    Svg,
    /// PDF with embedded fonts.
    #[cfg(feature = "pdf")]
    Pdf,
    /// PNG of 300 dots per inch on white.
    #[cfg(feature = "pdf")]
    Png,
}

/// Other extensions of pictures.
const OTHERS: [&str; 4] = ["eps", "ps", "jpg", "jpeg"];

impl Format {
    /// The format that the extension of `path` names; SVG if it names none.
    ///
    /// # Errors
    /// [`ReportError::Format`] if it names one that is not written.
    pub fn of(path: &Path) -> Result<Self, ReportError> {
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let refused = |why: String| Err(ReportError::Format { path: path.to_path_buf(), why });
        match extension.as_str() {
            #[cfg(feature = "pdf")]
            "pdf" => Ok(Self::Pdf),
            #[cfg(feature = "pdf")]
            "png" => Ok(Self::Png),
            #[cfg(not(feature = "pdf"))]
            "pdf" | "png" => refused(format!(
                "this program was built without the feature `pdf`, which writes PDF and PNG; name it {}",
                path.with_extension("svg").display()
            )),
            other if OTHERS.contains(&other) => refused(format!(
                "figures are written as SVG, PDF or PNG; name it {}",
                path.with_extension("pdf").display()
            )),
            _ => Ok(Self::Svg),
        }
    }
}

impl Drawing {
    /// The same with `family` before the other families of its SVG. Text keeps the room that it
    /// needs in Arial.
    ///
    /// # Errors
    /// [`ReportError::Font`] if a document cannot name it.
    pub fn in_font(self, family: &str) -> Result<Self, ReportError> {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.');
        if family.trim().is_empty() || !family.chars().all(plain) {
            return Err(ReportError::Font { name: family.into() });
        }
        let both = format!("'{}', {FAMILIES}", family.trim());
        Ok(Self { svg: self.svg.replacen(FAMILIES, &both, 1), ..self })
    }

    /// The file of the figure in `format`: the same figure gives the same bytes.
    ///
    /// # Errors
    /// [`ReportError::Export`] if the figure is too large for the format.
    pub fn encode(&self, format: Format) -> Result<Vec<u8>, ReportError> {
        match format {
            Format::Svg => Ok(self.svg.clone().into_bytes()),
            #[cfg(feature = "pdf")]
            Format::Pdf => rendering::pdf(self).map_err(|why| ReportError::Export { why }),
            #[cfg(feature = "pdf")]
            Format::Png => rendering::png(self).map_err(|why| ReportError::Export { why }),
        }
    }
}

#[cfg(feature = "pdf")]
mod rendering {
    use pdf_writer::{Content, Name, Pdf, Rect, Ref, TextStr};
    use png::{BitDepth, ColorType, Encoder, PixelDimensions, Unit};
    use resvg::tiny_skia::{Color, Pixmap, Transform};
    use resvg::usvg::{Options, Tree};

    use super::Drawing;

    /// The regular and the heavy face.
    const FACES: [&[u8]; 2] = [
        include_bytes!("fonts/GpumodelSans-Regular.ttf"),
        include_bytes!("fonts/GpumodelSans-Bold.ttf"),
    ];

    /// The family that both are of.
    const FAMILY: &str = "Gpumodel Sans";

    /// CSS pixels per inch, in which a document without a physical size is measured.
    const PIXELS: f32 = 96.0;

    /// Points per inch.
    const POINTS: f32 = 72.0;

    /// Dots per inch of a picture, and per metre.
    const DOTS: f32 = 300.0;
    const DOTS_PER_METRE: u32 = 11_811;

    /// Makes the embedded fonts those of every text.
    pub(super) fn load_fonts(options: &mut Options<'_>) {
        let fonts = options.fontdb_mut();
        for face in FACES {
            fonts.load_font_data(face.to_vec());
        }
        fonts.set_sans_serif_family(FAMILY);
    }

    /// The document of `drawing`, read again.
    fn tree(drawing: &Drawing) -> Result<Tree, String> {
        let mut options = Options { dpi: PIXELS, ..Options::default() };
        load_fonts(&mut options);
        Tree::from_str(&drawing.svg, &options).map_err(|error| error.to_string())
    }

    /// The figure as a PDF of one page.
    pub(super) fn pdf(drawing: &Drawing) -> Result<Vec<u8>, String> {
        let tree = tree(drawing)?;
        let size = [tree.size().width(), tree.size().height()].map(|side| side * POINTS / PIXELS);
        let chunk = svg2pdf::to_chunk(&tree, svg2pdf::ConversionOptions::default());
        let (chunk, figure) = chunk.map_err(|error| error.to_string())?;
        // The figure's own objects come behind those of the page.
        let [catalog, pages, page, content, info] = [1, 2, 3, 4, 5].map(Ref::new);
        let behind = |object: Ref| Ref::new(object.get() + info.get());
        let mut pdf = Pdf::new();
        pdf.catalog(catalog).pages(pages);
        pdf.pages(pages).kids([page]).count(1);
        let mut sheet = pdf.page(page);
        sheet.media_box(Rect::new(0.0, 0.0, size[0], size[1])).parent(pages).contents(content);
        sheet.resources().x_objects().pair(Name(b"Figure"), behind(figure));
        drop(sheet);
        let mut marks = Content::new();
        marks.transform([size[0], 0.0, 0.0, size[1], 0.0, 0.0]).x_object(Name(b"Figure"));
        pdf.stream(content, &marks.finish());
        pdf.document_info(info)
            .title(TextStr(&drawing.title))
            .subject(TextStr(&drawing.provenance))
            .producer(TextStr("gpumodel"));
        pdf.extend(&chunk.renumber(behind));
        Ok(pdf.finish())
    }

    /// The figure as a picture on white.
    pub(super) fn png(drawing: &Drawing) -> Result<Vec<u8>, String> {
        let tree = tree(drawing)?;
        let scale = DOTS / PIXELS;
        let size = tree.size().to_int_size().scale_by(scale);
        let size = size.and_then(|size| Some((size, Pixmap::new(size.width(), size.height())?)));
        let (size, mut pixels) =
            size.ok_or("the figure is too large for a picture; write a PDF")?;
        pixels.fill(Color::WHITE);
        resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
        // Every pixel is opaque, so three of its four bytes say all.
        let colours: Vec<u8> = pixels
            .data()
            .chunks_exact(4)
            .flat_map(|pixel| [pixel[0], pixel[1], pixel[2]])
            .collect();
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, size.width(), size.height());
        encoder.set_color(ColorType::Rgb);
        encoder.set_depth(BitDepth::Eight);
        let (xppu, yppu) = (DOTS_PER_METRE, DOTS_PER_METRE);
        encoder.set_pixel_dims(Some(PixelDimensions { xppu, yppu, unit: Unit::Meter }));
        for (key, text) in [("Title", &drawing.title), ("Description", &drawing.provenance)] {
            encoder.add_itxt_chunk(key.into(), text.clone()).map_err(|error| error.to_string())?;
        }
        let mut writer = encoder.write_header().map_err(|error| error.to_string())?;
        writer.write_image_data(&colours).map_err(|error| error.to_string())?;
        writer.finish().map_err(|error| error.to_string())?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Format;

    #[test]
    fn extensions_name_the_format_and_others_are_refused() {
        for svg in ["a.svg", "a.SVG", "a", "-", "pdf", "a.pdf/b.svg", "a.json"] {
            assert_eq!(Format::of(Path::new(svg)).unwrap(), Format::Svg, "{svg}");
        }
        for other in ["f/a.eps", "f/a.JPEG"] {
            let error = Format::of(Path::new(other)).unwrap_err().to_string();
            assert!(error.starts_with(other) && error.ends_with("name it f/a.pdf"), "{error}");
        }
    }

    #[cfg(not(feature = "pdf"))]
    #[test]
    fn without_the_feature_only_svg_is_written() {
        for name in ["f/a.pdf", "f/a.PNG"] {
            let error = Format::of(Path::new(name)).unwrap_err().to_string();
            assert!(error.contains("without the feature `pdf`"), "{error}");
            assert!(error.starts_with(name) && error.ends_with("name it f/a.svg"), "{error}");
        }
    }

    /// What is measured before drawing is what the embedded fonts take.
    #[cfg(feature = "pdf")]
    #[test]
    fn widths_are_those_of_the_embedded_fonts() {
        use crate::chart::{heavy_width, text_width};
        use resvg::usvg::{Node, Options, Tree};
        let mut options = Options::default();
        super::rendering::load_fonts(&mut options);
        let ink = |text: &str, weight: &str| {
            let text = crate::escape(text);
            let svg = format!(
                "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><text font-family='sans-serif' font-size='100' font-weight='{weight}'>{text}</text></svg>"
            );
            let tree = Tree::from_str(&svg, &options).unwrap();
            let Some(Node::Text(text)) = tree.root().children().first() else {
                panic!("{svg} has no text");
            };
            f64::from(text.abs_bounding_box().width())
        };
        let signs = (' '..='~').chain("·–×±−µ∞".chars());
        // Spaces at the ends of a text are not drawn.
        for c in signs.filter(|c| *c != ' ') {
            let (one, many) = (c.to_string(), c.to_string().repeat(21));
            for (weight, width) in
                [("normal", text_width as fn(&str, f64) -> f64), ("bold", heavy_width)]
            {
                let found = (ink(&many, weight) - ink(&one, weight)) / 20.0;
                let kept = width(&one, 100.0);
                assert!((found - kept).abs() < 0.11, "{c} {weight}: {found}, kept {kept}");
            }
        }
    }
}
